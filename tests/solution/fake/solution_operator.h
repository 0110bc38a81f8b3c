/* In place of what `ropegrad export-solution` writes: the build says which operator; its CUDA side is the test's own. */
#define SOLUTION_CONTRACT TEST_CONTRACT
#define SOLUTION_CUDA fake_cuda

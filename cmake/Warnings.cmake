# Every target links this: the warnings the project holds to, and no contraction of a*b+c behind the code's back, so that
# a result does not depend on the compiler's taste.
add_library(ropegrad_flags INTERFACE)
target_compile_options(ropegrad_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wvla -Wmissing-prototypes
  -ffp-contract=off -fno-math-errno
  $<$<BOOL:${ROPEGRAD_WERROR}>:-Werror>)

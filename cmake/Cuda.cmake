# Device code. Each operator's kernels, and the harness's, are built by nvcc to a fat binary that is embedded as it is:
# ropegrad_embed_cuda(LIST NAME SOURCE) adds to LIST an object file with the bytes between the symbols NAME and NAME_end.
# One image an operator, and not one for all, so that a change of one leaves the others' digests alone.
set(ROPEGRAD_CUDA AUTO CACHE STRING "Build the CUDA backend: ON, OFF, or AUTO where nvcc is found")
set_property(CACHE ROPEGRAD_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ROPEGRAD_CUDA_ARCHITECTURES 80 90 100 120 CACHE STRING "GPU architectures to build machine code for")
# What the driver compiles from where an architecture is none of these.
set(ROPEGRAD_CUDA_PTX 80 CACHE STRING "Architecture of the embedded PTX; empty: none")

set(ROPEGRAD_HAVE_CUDA 0)
if(ROPEGRAD_CUDA STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING)
  message(STATUS "CUDA: left out of a cross build")
elseif(ROPEGRAD_CUDA)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(ROPEGRAD_HAVE_CUDA 1)
    message(STATUS "CUDA: ${CUDAToolkit_NVCC_EXECUTABLE} (${CUDAToolkit_VERSION}), for ${ROPEGRAD_CUDA_ARCHITECTURES}")
  elseif(ROPEGRAD_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: nvcc was not found, so the library is built for the CPU alone")
  else()
    message(FATAL_ERROR "ROPEGRAD_CUDA is ON, but nvcc was not found: put it on PATH, or set CUDAToolkit_ROOT")
  endif()
endif()

# A spilled register is memory traffic that nobody asked for, so it ends the build, as does every other warning. No
# fast-math: large angles must come out right.
set(ropegrad_nvcc_flags -std=c++17 -O3 --threads 0 -Werror all-warnings
  -Xptxas -warn-spills -Xptxas -Werror)
# A sixth of the size; the driver unpacks an image when it is loaded.
if(ROPEGRAD_HAVE_CUDA AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND ropegrad_nvcc_flags --compress-mode=size)
endif()
foreach(architecture IN LISTS ROPEGRAD_CUDA_ARCHITECTURES)
  list(APPEND ropegrad_nvcc_flags -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
if(ROPEGRAD_CUDA_PTX)
  list(APPEND ropegrad_nvcc_flags -gencode arch=compute_${ROPEGRAD_CUDA_PTX},code=compute_${ROPEGRAD_CUDA_PTX})
endif()

function(ropegrad_embed_cuda list name source)
  set(folder ${PROJECT_BINARY_DIR}/cuda)
  set(image ${folder}/${name}.fatbin)
  get_target_property(dlpack_include dlpack::dlpack INTERFACE_INCLUDE_DIRECTORIES)
  add_custom_command(OUTPUT ${image}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${ropegrad_nvcc_flags} -fatbin -MD -MF ${image}.d -MT ${image}
      -I ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include -I ${ROPEGRAD_GENERATED_INCLUDE} -I ${dlpack_include}
      -o ${image} ${PROJECT_SOURCE_DIR}/${source}
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} DEPFILE ${image}.d
    COMMENT "Building device code: ${source}" VERBATIM)
  # Assembly inside C, so that the one compiler does it on every machine.
  set(wrapper ${folder}/${name}.c)
  file(CONFIGURE OUTPUT ${wrapper} @ONLY CONTENT
"/* Written by cmake/Cuda.cmake: @name@.fatbin, byte for byte. */
__asm__(\".pushsection .rodata\\n\"
        \".balign 64\\n\"
        \".hidden @name@\\n.globl @name@\\n@name@:\\n\"
        \".incbin \\\"@image@\\\"\\n\"
        \".hidden @name@_end\\n.globl @name@_end\\n@name@_end:\\n\"
        \".popsection\\n\");
")
  set_source_files_properties(${wrapper} PROPERTIES OBJECT_DEPENDS ${image})
  set(${list} ${${list}} ${wrapper} PARENT_SCOPE)
endfunction()

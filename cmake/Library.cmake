# The instruction-set levels that this processor family has, and the compiler flags of each. The float64 level serves
# float64 tensors at every level.
set(ROPEGRAD_LEVELS scalar float64)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND ROPEGRAD_LEVELS avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  list(APPEND ROPEGRAD_LEVELS neon)
endif()
# Levels that a build can do without: a program picks among those that are there.
set(ROPEGRAD_WITHOUT_LEVELS "" CACHE STRING "Instruction-set levels to leave out: avx2, avx512")
list(REMOVE_ITEM ROPEGRAD_LEVELS ${ROPEGRAD_WITHOUT_LEVELS})
set(ROPEGRAD_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(ROPEGRAD_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)

# What every target that compiles library code sees.
add_library(ropegrad_internal INTERFACE)
target_include_directories(ropegrad_internal INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${ROPEGRAD_GENERATED_INCLUDE})
target_link_libraries(ropegrad_internal INTERFACE ropegrad_flags dlpack::dlpack)

set(kernel_objects)
foreach(level IN LISTS ROPEGRAD_LEVELS)
  string(TOUPPER ${level} LEVEL)
  set(bodies)
  foreach(op IN LISTS ROPEGRAD_OPS)
    list(APPEND bodies ${PROJECT_SOURCE_DIR}/ops/${op}/${op}_cpu.c ${PROJECT_SOURCE_DIR}/ops/${op}/${op}_forward_cpu.c)
  endforeach()
  add_library(ropegrad_cpu_${level} OBJECT ${bodies})
  target_link_libraries(ropegrad_cpu_${level} PRIVATE ropegrad_internal)
  target_compile_definitions(ropegrad_cpu_${level} PRIVATE RG_LEVEL=RG_LEVEL_${LEVEL})
  target_compile_options(ropegrad_cpu_${level} PRIVATE ${ROPEGRAD_FLAGS_${level}})
  list(APPEND kernel_objects $<TARGET_OBJECTS:ropegrad_cpu_${level}>)
endforeach()

file(GLOB library_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/base/*.c ${PROJECT_SOURCE_DIR}/src/hw/*.c
  ${PROJECT_SOURCE_DIR}/src/spec/*.c ${PROJECT_SOURCE_DIR}/src/core/*.c)
foreach(op IN LISTS ROPEGRAD_OPS)
  list(APPEND library_sources ${PROJECT_SOURCE_DIR}/ops/${op}/${op}_spec.c ${PROJECT_SOURCE_DIR}/ops/${op}/${op}_ref.c)
endforeach()
if(ROPEGRAD_HAVE_CUDA)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.c)
  list(FILTER cuda_sources EXCLUDE REGEX "/none\\.c$")
  foreach(op IN LISTS ROPEGRAD_OPS)
    foreach(pass IN ITEMS ${op} ${op}_forward)
      list(APPEND cuda_sources ${PROJECT_SOURCE_DIR}/ops/${op}/${pass}_cuda.c)
      ropegrad_embed_cuda(cuda_sources rg_${pass}_image ops/${op}/${pass}_cuda.cu)
    endforeach()
  endforeach()
else()
  set(cuda_sources ${PROJECT_SOURCE_DIR}/src/cuda/none.c)
endif()
add_library(ropegrad_objects OBJECT ${library_sources} ${cuda_sources})
target_link_libraries(ropegrad_objects PRIVATE ropegrad_internal OpenMP::OpenMP_C Threads::Threads)
target_compile_definitions(ropegrad_objects PRIVATE RG_HAVE_CUDA=${ROPEGRAD_HAVE_CUDA})
if(ROPEGRAD_HAVE_CUDA)
  target_include_directories(ropegrad_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()
# Not -O3: what a call runs before its kernel is fetched from memory where much other work came between, so less is more.
target_compile_options(ropegrad_objects PRIVATE $<$<CONFIG:Release>:-O2>)
foreach(level avx2 avx512 neon)
  string(TOUPPER ${level} LEVEL)
  if(level IN_LIST ROPEGRAD_LEVELS)
    target_compile_definitions(ropegrad_objects PRIVATE RG_HAVE_${LEVEL}=1)
  else()
    target_compile_definitions(ropegrad_objects PRIVATE RG_HAVE_${LEVEL}=0)
  endif()
endforeach()

# The shared library exports the stable API alone; the tool and the tests link the static one, which has the rest too.
foreach(kind SHARED STATIC)
  string(TOLOWER ${kind} suffix)
  add_library(ropegrad_${suffix} ${kind} $<TARGET_OBJECTS:ropegrad_objects> ${kernel_objects})
  target_link_libraries(ropegrad_${suffix} PUBLIC dlpack::dlpack PRIVATE OpenMP::OpenMP_C Threads::Threads ${CMAKE_DL_LIBS} m)
  target_include_directories(ropegrad_${suffix} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${ROPEGRAD_GENERATED_INCLUDE}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(ropegrad_${suffix} PROPERTIES OUTPUT_NAME ropegrad LINKER_LANGUAGE C)
endforeach()
set_target_properties(ropegrad_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

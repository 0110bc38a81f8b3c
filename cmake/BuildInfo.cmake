# Writes OUTPUT, a header that says what is being built: run as a script at every build, because a commit can change
# without anything being configured again. The file is touched only when its contents change.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  # Included: adds the target that does it. The header is <ropegrad_build_info.h> of ROPEGRAD_BUILD_INFO_INCLUDE.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(ROPEGRAD_BUILD_INFO_INCLUDE ${PROJECT_BINARY_DIR}/build_info)
  add_custom_target(ropegrad_build_info
    COMMAND ${CMAKE_COMMAND}
      -D SOURCE=${PROJECT_SOURCE_DIR}
      -D OUTPUT=${ROPEGRAD_BUILD_INFO_INCLUDE}/ropegrad_build_info.h
      -D "COMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
      -D "FLAGS=${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}"
      -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${ROPEGRAD_BUILD_INFO_INCLUDE}/ropegrad_build_info.h
    COMMENT "Noting commit and compiler"
    VERBATIM)
  return()
endif()

cmake_minimum_required(VERSION 3.25)
# An empty commit stands for "not built from a git checkout".
set(commit "")
set(dirty 0)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit "")
  else()
    execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(dirty 1)
    endif()
  endif()
endif()
string(STRIP "${FLAGS}" FLAGS)
foreach(text IN ITEMS COMPILER FLAGS)
  string(REPLACE "\\" "\\\\" ${text} "${${text}}")
  string(REPLACE "\"" "\\\"" ${text} "${${text}}")
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"/* Written by cmake/BuildInfo.cmake at every build. */
#define ROPEGRAD_BUILD_COMMIT \"@commit@\"
#define ROPEGRAD_BUILD_DIRTY @dirty@
#define ROPEGRAD_BUILD_COMPILER \"@COMPILER@\"
#define ROPEGRAD_BUILD_FLAGS \"@FLAGS@\"
")

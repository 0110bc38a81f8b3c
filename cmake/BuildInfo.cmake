# Writes OUTPUT, a header that says what is being built: run as a script at every build, because a commit can change
# without anything being configured again. The file is touched only when its contents change.
#
# A copied tree without its git folder cannot say which commit it is: -D ROPEGRAD_COMMIT=SHA and -D ROPEGRAD_DIRTY=0|1
# say it, or, at build time, environment variables of the same names, which come first. Then git is not asked.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(ROPEGRAD_COMMIT "" CACHE STRING "Commit that is being built; empty: ask git")
  set(ROPEGRAD_DIRTY "" CACHE STRING "With ROPEGRAD_COMMIT: 1 if the sources differ from it, 0 if not")
  # Included: adds the target that does it. The header is <ropegrad_build_info.h> of ROPEGRAD_BUILD_INFO_INCLUDE.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(ROPEGRAD_BUILD_INFO_INCLUDE ${PROJECT_BINARY_DIR}/build_info)
  add_custom_target(ropegrad_build_info
    COMMAND ${CMAKE_COMMAND}
      -D SOURCE=${PROJECT_SOURCE_DIR}
      -D OUTPUT=${ROPEGRAD_BUILD_INFO_INCLUDE}/ropegrad_build_info.h
      -D "COMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
      -D "FLAGS=${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}"
      -D "GIVEN_COMMIT=${ROPEGRAD_COMMIT}" -D "GIVEN_DIRTY=${ROPEGRAD_DIRTY}"
      -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${ROPEGRAD_BUILD_INFO_INCLUDE}/ropegrad_build_info.h
    COMMENT "Noting commit and compiler"
    VERBATIM)
  return()
endif()

cmake_minimum_required(VERSION 3.25)
if(NOT "$ENV{ROPEGRAD_COMMIT}" STREQUAL "")
  set(GIVEN_COMMIT "$ENV{ROPEGRAD_COMMIT}")
  set(GIVEN_DIRTY "$ENV{ROPEGRAD_DIRTY}")
endif()
# An empty commit stands for "not built from a git checkout".
set(commit "")
set(dirty 0)
find_program(GIT git)
if(GIVEN_COMMIT)
  if(NOT GIVEN_COMMIT MATCHES "^[0-9a-f]+$" OR NOT GIVEN_DIRTY MATCHES "^[01]$")
    message(FATAL_ERROR "ROPEGRAD_COMMIT takes a commit's hexadecimal name, not '${GIVEN_COMMIT}', and ROPEGRAD_DIRTY "
      "with it 0 or 1, not '${GIVEN_DIRTY}'")
  endif()
  set(commit ${GIVEN_COMMIT})
  set(dirty ${GIVEN_DIRTY})
elseif(GIT)
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

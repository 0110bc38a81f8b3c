/* sources.h: source files of this build, embedded in the tool by cmake/Sources.cmake. */
#ifndef ROPEGRAD_TOOLS_SOURCES_H
#define ROPEGRAD_TOOLS_SOURCES_H

typedef struct rgt_source {
  const char *name; /* as others include it: "src/cuda/launch.h" */
  const char *text; /* ends at `end`, without a NUL */
  const char *end;
} rgt_source;

extern const rgt_source rgt_sources[];
extern const int rgt_num_sources;

#endif /* ROPEGRAD_TOOLS_SOURCES_H */

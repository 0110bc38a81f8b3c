/* files.h: which files there are to read. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_FILES_H
#define ROPEGRAD_HARNESS_EVIDENCE_FILES_H

#include "harness/base/message.h"

typedef struct rge_files {
  char **paths; /* sorted within each folder */
  char **names; /* the part below the folder that was asked for, without ".json" */
  int count;
} rge_files;

/* All .json files of the folders and below them, and the files named themselves; `paths` ends with NULL. A link to a
 * folder is not followed. */
bool rge_files_find(const char *const *paths, rge_files *files, rgh_message *why);

void rge_files_free(rge_files *files);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_FILES_H */

/* suite_folders.h: the folders that suites are looked for in by name. */
#ifndef ROPEGRAD_HARNESS_CASES_SUITE_FOLDERS_H
#define ROPEGRAD_HARNESS_CASES_SUITE_FOLDERS_H

#include "harness/base/message.h"

enum { RGH_SUITE_PATH_BYTES = 4096 };

/* Where NAME.json is: in the first of the folders, a list ended by NULL, that has it. A name that holds a '/' or ends
 * in
 * ".json" is a path already. The reason lists the suites that there are. */
bool rgh_suite_find(const char *const *folders, const char *name, char path[RGH_SUITE_PATH_BYTES], rgh_message *why);

/* The names of all suites in the folders, sorted, each once. The caller frees each and the list; NULL: no memory. */
char **rgh_suite_names(const char *const *folders, int *num_names);

#endif /* ROPEGRAD_HARNESS_CASES_SUITE_FOLDERS_H */

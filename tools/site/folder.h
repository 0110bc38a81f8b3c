/* folder.h: a folder that appears whole or not at all. */
#ifndef ROPEGRAD_TOOLS_SITE_FOLDER_H
#define ROPEGRAD_TOOLS_SITE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/message.h"

enum { RGS_PATH_BYTES = 4096 };

typedef struct rgs_folder {
  char final[RGS_PATH_BYTES];     /* without a '/' at its end */
  char temporary[RGS_PATH_BYTES]; /* beside it */
  const char *list;               /* name of the file in it that names all others */
} rgs_folder;

/* Makes the temporary folder. Fails when `path` exists and is not a folder whose every file is named by the `list` in
 * it, which rgs_folder_finish wrote: nothing but what came from here is ever replaced. An empty folder is fine. `list`
 * lives as long as the folder. */
bool rgs_folder_begin(const char *path, const char *list, rgs_folder *folder, rgh_message *why);

/* Folders below it, one level. */
bool rgs_folder_below(const rgs_folder *folder, const char *name, rgh_message *why);

/* Writes one file of it. Safe from several threads. */
bool rgs_folder_write(const rgs_folder *folder, const char *name, const char *bytes, size_t length, rgh_message *why);

/* Copies a file into it. */
bool rgs_folder_copy(const rgs_folder *folder, const char *name, const char *from, rgh_message *why);

/* Puts it in place of the one before. */
bool rgs_folder_finish(const rgs_folder *folder, rgh_message *why);

/* Removes the temporary folder. */
void rgs_folder_abandon(const rgs_folder *folder);

#endif /* ROPEGRAD_TOOLS_SITE_FOLDER_H */

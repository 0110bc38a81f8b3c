#include "harness/evidence/sums.h"

#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "harness/evidence/file.h"

enum { LINE_BYTES = 4096, HEX_DIGITS = 32 };

static void check_line(const char *folder, char *line, rge_problems *problems) {
  char path[2 * LINE_BYTES];
  line[strcspn(line, "\r\n")] = '\0';
  const size_t digits = strspn(line, "0123456789abcdef");
  const char *name = line + digits + strspn(line + digits, " *");
  if (digits != HEX_DIGITS || *name == '\0') {
    rge_problem_add(problems, RGE_LOWERS, "%s/XXH128SUMS: '%.60s' is no line of xxh128sum", folder, line);
    return;
  }
  snprintf(path, sizeof path, "%s/%s", folder, name);
  char digest[RGE_DIGEST_BYTES];
  rgh_message why;
  if (!rge_file_digest(path, digest, &why)) {
    rge_problem_add(problems, RGE_LOWERS, "%s", why.text);
  } else if (strncmp(strchr(digest, ':') + 1, line, HEX_DIGITS) != 0) {
    rge_problem_add(problems, RGE_LOWERS, "%s: has the digest %s, not the one of XXH128SUMS", path, digest);
  }
}

static void check_list(const char *folder, const char *path, rge_problems *problems) {
  char line[LINE_BYTES];
  FILE *list = fopen(path, "r");
  if (list == NULL) {
    rge_problem_add(problems, RGE_LOWERS, "%s: %s", path, strerror(errno));
    return;
  }
  while (fgets(line, sizeof line, list) != NULL) {
    if (line[0] != '\n' && line[0] != '#') check_line(folder, line, problems);
  }
  fclose(list);
}

void rge_sums_check(const char *folder, rge_problems *problems) {
  char *roots[] = {(char *)(uintptr_t)folder, NULL};
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  if (tree == NULL) return; /* whoever reads the records complains */
  for (FTSENT *entry; (entry = fts_read(tree)) != NULL;) {
    if (entry->fts_info == FTS_D && entry->fts_level > 0 && entry->fts_name[0] == '.') fts_set(tree, entry, FTS_SKIP);
    if (entry->fts_info != FTS_F || entry->fts_level == 0 || strcmp(entry->fts_name, "XXH128SUMS") != 0) continue;
    char below[LINE_BYTES];
    snprintf(below, sizeof below, "%.*s", (int)(strlen(entry->fts_path) - strlen("/XXH128SUMS")), entry->fts_path);
    check_list(below, entry->fts_path, problems);
  }
  fts_close(tree);
}

#include "harness/evidence/sums.h"

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
  rge_file file;
  rgh_message why;
  if (!rge_file_read(path, &file, &why)) {
    rge_problem_add(problems, RGE_LOWERS, "%s", why.text);
    return;
  }
  if (strncmp(strchr(file.digest, ':') + 1, line, HEX_DIGITS) != 0) {
    rge_problem_add(problems, RGE_LOWERS, "%s: has the digest %s, not the one of XXH128SUMS", path, file.digest);
  }
  rge_file_free(&file);
}

int rge_sums_check(const char *folder, rge_problems *problems) {
  char path[LINE_BYTES], line[LINE_BYTES];
  snprintf(path, sizeof path, "%s/XXH128SUMS", folder);
  FILE *list = fopen(path, "r");
  int checked = 0;
  if (list == NULL) return 0;
  while (fgets(line, sizeof line, list) != NULL) {
    if (line[0] == '\n' || line[0] == '#') continue;
    check_line(folder, line, problems);
    checked++;
  }
  fclose(list);
  return checked;
}

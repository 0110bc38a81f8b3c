#include "tools/site/template.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_TEMPLATE_BYTES = 1 << 20 };

/* ---- files ---- */

static char *read_whole(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  char *text = malloc(MAX_TEMPLATE_BYTES);
  if (text != NULL) {
    const size_t length = fread(text, 1, MAX_TEMPLATE_BYTES - 1, file);
    text[length] = '\0';
    char *shorter = realloc(text, length + 1);
    if (shorter != NULL) text = shorter;
  }
  fclose(file);
  return text;
}

/* ---- tags ---- */

static bool fail(const rgs_template *t, const char *what, const char *name, rgh_message *why) {
  return rgh_fail(why, "template %s: {{%s}}: %s", t->name, name, what);
}

/* What stands between the braces. */
static bool read_inner(const rgs_template *t, const char *inner, const char *close, rgs_tag *tag, rgh_message *why) {
  if (strchr("#^/&@>!", *inner) != NULL) tag->kind = *inner++;
  if (tag->kind == '!') return true;
  if (close - inner >= RGS_TAG_NAME || close == inner) return fail(t, "is empty or too long", "", why);
  memcpy(tag->name, inner, (size_t)(close - inner));
  char *bar = strchr(tag->name, '|');
  if (bar == NULL) return true;
  strcpy(tag->filter, bar + 1);
  *bar = '\0';
  return true;
}

/* Finds the next tag from `from` on. *done: there is none. */
static bool next_tag(const rgs_template *t, const char *from, rgs_tag *tag, bool *done, rgh_message *why) {
  const char *begin = strstr(from, "{{");
  *done = begin == NULL;
  if (*done) return true;
  const char *close = strstr(begin, "}}");
  if (close == NULL) return fail(t, "is not closed", "", why);
  *tag = (rgs_tag){.begin = begin, .end = close + 2};
  if (!read_inner(t, begin + 2, close, tag, why)) return false;
  const bool is_value = tag->kind == 0 || tag->kind == '&' || tag->kind == '@';
  if (!is_value && *tag->end == '\n') tag->end++;
  return true;
}

/* Pairs the sections' tags. */
static bool pair_sections(rgs_template *t, rgh_message *why) {
  int open[MAX_DEPTH], depth = 0;
  for (int i = 0; i < t->num_tags; i++) {
    const rgs_tag *tag = &t->tags[i];
    if (tag->kind == '#' || tag->kind == '^') {
      if (depth == MAX_DEPTH) return fail(t, "sections are nested too deep", tag->name, why);
      open[depth++] = i;
    } else if (tag->kind == '/') {
      if (depth == 0) return fail(t, "ends a section that was not begun", tag->name, why);
      rgs_tag *begun = &t->tags[open[--depth]];
      if (strcmp(begun->name, tag->name) != 0) return fail(t, "has no end", begun->name, why);
      begun->close = i;
    }
  }
  return depth == 0 || fail(t, "has no end", t->tags[open[depth - 1]].name, why);
}

bool rgs_template_compile(rgs_template *t, rgh_message *why) {
  const char *from = t->text;
  for (;;) {
    rgs_tag tag;
    bool done;
    if (!next_tag(t, from, &tag, &done, why)) return false;
    if (done) return pair_sections(t, why);
    rgs_tag *longer = realloc(t->tags, (size_t)(t->num_tags + 1) * sizeof *longer);
    if (longer == NULL) return rgh_fail(why, "no memory");
    t->tags = longer;
    t->tags[t->num_tags++] = tag;
    from = tag.end;
  }
}

/* ---- folders ---- */

static bool add_template(rgs_templates *templates, const char *folder, const char *file, rgh_message *why) {
  char path[4096];
  const size_t length = strlen(file);
  if (length < 6 || strcmp(file + length - 5, ".html") != 0) return true;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  rgs_template *longer = realloc(templates->list, (size_t)(templates->count + 1) * sizeof *longer);
  if (longer == NULL) return rgh_fail(why, "no memory");
  templates->list = longer;
  rgs_template *made = &templates->list[templates->count++];
  *made = (rgs_template){.name = strndup(file, length - 5), .text = read_whole(path)};
  if (made->name == NULL || made->text == NULL) return rgh_fail(why, "%s: cannot be read", path);
  return rgs_template_compile(made, why);
}

bool rgs_templates_load(const char *folder, rgs_templates *templates, rgh_message *why) {
  *templates = (rgs_templates){0};
  DIR *open_folder = opendir(folder);
  if (open_folder == NULL) return rgh_fail(why, "templates: %s: %s", folder, strerror(errno));
  bool good = true;
  for (const struct dirent *entry; good && (entry = readdir(open_folder)) != NULL;) {
    good = add_template(templates, folder, entry->d_name, why);
  }
  closedir(open_folder);
  if (good && templates->count == 0) good = rgh_fail(why, "templates: %s: holds no .html file", folder);
  if (!good) rgs_templates_free(templates);
  return good;
}

void rgs_templates_free(rgs_templates *templates) {
  for (int t = 0; t < templates->count; t++) {
    free(templates->list[t].name);
    free(templates->list[t].text);
    free(templates->list[t].tags);
  }
  free(templates->list);
  *templates = (rgs_templates){0};
}

#include "tools/site/template.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_NAME = 64, MAX_TEMPLATE_BYTES = 1 << 20 };

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

static bool add_template(rgs_templates *templates, const char *folder, const char *file) {
  char path[4096];
  const size_t length = strlen(file);
  if (length < 6 || strcmp(file + length - 5, ".html") != 0) return true;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  rgs_template *longer = realloc(templates->list, (size_t)(templates->count + 1) * sizeof *longer);
  if (longer == NULL) return false;
  templates->list = longer;
  rgs_template *made = &templates->list[templates->count++];
  made->name = strndup(file, length - 5);
  made->text = read_whole(path);
  return made->name != NULL && made->text != NULL;
}

bool rgs_templates_load(const char *folder, rgs_templates *templates, rgh_message *why) {
  *templates = (rgs_templates){0};
  DIR *open_folder = opendir(folder);
  if (open_folder == NULL) return rgh_fail(why, "templates: %s: %s", folder, strerror(errno));
  bool good = true;
  for (const struct dirent *entry; good && (entry = readdir(open_folder)) != NULL;) {
    good =
        add_template(templates, folder, entry->d_name) || rgh_fail(why, "%s/%s: cannot be read", folder, entry->d_name);
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
  }
  free(templates->list);
  *templates = (rgs_templates){0};
}

/* ---- rendering ---- */

typedef struct renderer {
  const rgs_templates *templates;
  const json_t *scope[MAX_DEPTH]; /* the innermost last */
  int depth, partials;            /* that are being rendered */
  const char *name;               /* of the template being rendered */
  rge_text *out;
  rgh_message *why;
} renderer;

typedef struct tag {
  char kind; /* '#', '^', '/', '&', '@', '>', '!', or 0: a value */
  char name[MAX_NAME];
  char filter[MAX_NAME];
  const char *begin, *end; /* in the template, braces included */
} tag;

static bool fail(const renderer *r, const char *what, const char *name) {
  return rgh_fail(r->why, "template %s: {{%s}}: %s", r->name, name, what);
}

/* Finds the next tag between `from` and `end`. False: there is none, or *broken is set. */
static bool next_tag(const renderer *r, const char *from, const char *end, tag *found, bool *broken) {
  *broken = false;
  const char *begin = memmem(from, (size_t)(end - from), "{{", 2);
  if (begin == NULL) return false;
  const char *close = memmem(begin, (size_t)(end - begin), "}}", 2);
  const char *inner = begin + 2;
  *found = (tag){.begin = begin, .end = close != NULL ? close + 2 : NULL};
  if (close != NULL && strchr("#^/&@>!", *inner) != NULL) found->kind = *inner++;
  if (close == NULL || (found->kind != '!' && (close - inner >= MAX_NAME || close == inner))) {
    *broken = !fail(r, "is not closed, empty or too long", "");
    return false;
  }
  if (found->kind == '!') return true;
  memcpy(found->name, inner, (size_t)(close - inner));
  char *bar = strchr(found->name, '|');
  if (bar == NULL) return true;
  strcpy(found->filter, bar + 1);
  *bar = '\0';
  return true;
}

static const json_t *look_up(const renderer *r, const char *name) {
  if (strcmp(name, ".") == 0) return r->scope[r->depth - 1];
  char first[MAX_NAME];
  const size_t length = strcspn(name, ".");
  memcpy(first, name, length);
  first[length] = '\0';
  const json_t *value = NULL;
  for (int d = r->depth - 1; d >= 0 && value == NULL; d--) value = json_object_get(r->scope[d], first);
  while (value != NULL && name[length] == '.') {
    return json_object_get(value, name + length + 1); /* two levels are enough for pages */
  }
  return value;
}

static bool is_shown(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_NULL:
    case JSON_FALSE:
      return false;
    case JSON_STRING:
      return json_string_length(value) > 0;
    case JSON_ARRAY:
      return json_array_size(value) > 0;
    case JSON_OBJECT:
      return json_object_size(value) > 0;
    default:
      return true;
  }
}

static bool add_value(renderer *r, const tag *place, const json_t *value) {
  rge_text text = {0};
  if (place->filter[0] != '\0') {
    if (!rgs_format(place->filter, value, &text)) return fail(r, "there is no such filter", place->filter);
  } else if (json_is_string(value)) {
    rge_text_add_bytes(&text, json_string_value(value), json_string_length(value));
  } else if (json_is_integer(value)) {
    rge_text_format(&text, "%lld", (long long)json_integer_value(value));
  } else if (json_is_real(value)) {
    rge_text_format(&text, "%.6g", json_real_value(value));
  } else if (json_is_boolean(value)) {
    rge_text_add(&text, json_is_true(value) ? "yes" : "no");
  } else if (!json_is_null(value)) {
    rge_text_free(&text);
    return fail(r, "is a list or an object, not a value", place->name);
  }
  if (text.bytes != NULL) rge_text_add_escaped(r->out, text.bytes);
  if (text.failed) r->out->failed = true;
  rge_text_free(&text);
  return true;
}

static bool render(renderer *r, const char *from, const char *end);

static bool render_partial(renderer *r, const char *name) {
  for (int t = 0; t < r->templates->count; t++) {
    const rgs_template *found = &r->templates->list[t];
    if (strcmp(found->name, name) != 0) continue;
    if (r->partials == MAX_DEPTH) return fail(r, "holds itself, or templates are nested too deep", name);
    const char *outer = r->name;
    r->name = found->name;
    r->partials++;
    const bool good = render(r, found->text, found->text + strlen(found->text));
    if (good) r->name = outer;
    r->partials--;
    return good;
  }
  return fail(r, "there is no such template", name);
}

static bool render_inside(renderer *r, const json_t *value, const char *from, const char *end) {
  if (r->depth == MAX_DEPTH) return fail(r, "sections are nested too deep", "#");
  r->scope[r->depth++] = value;
  const bool good = render(r, from, end);
  r->depth--;
  return good;
}

static bool render_section(renderer *r, const tag *open, const json_t *value, const char *from, const char *end) {
  if (open->kind == '^') return is_shown(value) || render(r, from, end);
  if (!is_shown(value)) return true;
  if (!json_is_array(value)) return render_inside(r, value, from, end);
  for (size_t i = 0; i < json_array_size(value); i++) {
    if (!render_inside(r, json_array_get(value, i), from, end)) return false;
  }
  return true;
}

/* Where the section that `open` begins ends: *close is its closing tag. */
static bool find_close(const renderer *r, const tag *open, const char *from, const char *end, tag *close) {
  bool broken;
  for (int level = 1; next_tag(r, from, end, close, &broken); from = close->end) {
    if (strcmp(close->name, open->name) != 0) continue;
    if (close->kind == '#' || close->kind == '^') level++;
    if (close->kind == '/' && --level == 0) return true;
  }
  return !broken && fail(r, "has no end", open->name);
}

static const char *past_line_break(const char *at) { return *at == '\n' ? at + 1 : at; }

static bool render_tag(renderer *r, const tag *found, const char *end, const char **next) {
  *next = found->kind == 0 || found->kind == '&' || found->kind == '@' ? found->end : past_line_break(found->end);
  if (found->kind == '!') return true;
  if (found->kind == '/') return fail(r, "ends a section that was not begun", found->name);
  if (found->kind == '>') return render_partial(r, found->name);
  const json_t *value = look_up(r, found->name);
  if (value == NULL) return fail(r, "nothing has this name", found->name);
  tag close;
  switch (found->kind) {
    case '#':
    case '^':
      if (!find_close(r, found, *next, end, &close) || !render_section(r, found, value, *next, close.begin))
        return false;
      *next = past_line_break(close.end);
      return true;
    case '&':
      rge_text_add_bytes(r->out, json_is_string(value) ? json_string_value(value) : "", json_string_length(value));
      return true;
    case '@':
      rgs_add_json(value, r->out);
      return true;
    default:
      return add_value(r, found, value);
  }
}

static bool render(renderer *r, const char *from, const char *end) {
  tag found;
  bool broken;
  while (next_tag(r, from, end, &found, &broken)) {
    rge_text_add_bytes(r->out, from, (size_t)(found.begin - from));
    if (!render_tag(r, &found, end, &from)) return false;
  }
  if (broken) return false;
  if (from < end) rge_text_add_bytes(r->out, from, (size_t)(end - from));
  return !r->out->failed || rgh_fail(r->why, "no memory");
}

bool rgs_render(const rgs_templates *templates, const char *name, const json_t *data, rge_text *out, rgh_message *why) {
  renderer r = {.templates = templates, .scope = {data}, .depth = 1, .name = name, .out = out, .why = why};
  return render_partial(&r, name);
}

#include <string.h>

#include "tools/site/template.h"

enum { MAX_DEPTH = 24 };

typedef struct renderer {
  const rgs_templates *templates;
  const json_t *scope[MAX_DEPTH]; /* the innermost last */
  int depth, partials;            /* that are being rendered */
  const rgs_template *now;        /* the template being rendered */
  rge_text formatted;             /* one value, before it is escaped */
  rge_text *out;
  rgh_message *why;
} renderer;

static bool fail(const renderer *r, const char *what, const char *name) {
  return rgh_fail(r->why, "template %s: {{%s}}: %s", r->now != NULL ? r->now->name : "", name, what);
}

static const json_t *look_up(const renderer *r, const char *name) {
  if (strcmp(name, ".") == 0) return r->scope[r->depth - 1];
  char first[RGS_TAG_NAME];
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

/* Without a filter. False: it is no value. */
static bool format_plain(const json_t *value, rge_text *out) {
  switch (json_typeof(value)) {
    case JSON_INTEGER:
      rge_text_format(out, "%lld", (long long)json_integer_value(value));
      return true;
    case JSON_REAL:
      rge_text_format(out, "%.6g", json_real_value(value));
      return true;
    case JSON_TRUE:
    case JSON_FALSE:
      rge_text_add(out, json_is_true(value) ? "yes" : "no");
      return true;
    default:
      return json_is_null(value);
  }
}

static bool add_value(renderer *r, const rgs_tag *tag, const json_t *value) {
  if (tag->filter[0] == '\0' && json_is_string(value)) {
    rge_text_add_escaped(r->out, json_string_value(value));
    return true;
  }
  rge_text *text = &r->formatted;
  text->length = 0;
  rge_text_add(text, "");
  if (tag->filter[0] != '\0') {
    if (!rgs_format(tag->filter, value, text)) return fail(r, "there is no such filter", tag->filter);
  } else if (!format_plain(value, text)) {
    return fail(r, "is a list or an object, not a value", tag->name);
  }
  if (text->failed) {
    r->out->failed = true;
  } else {
    rge_text_add_escaped(r->out, text->bytes);
  }
  return true;
}

/* The tags from number `tag` up to `last`, and the text around them from `from` up to `end`. */
static bool render(renderer *r, int tag, int last, const char *from, const char *end);

static bool render_partial(renderer *r, const char *name) {
  for (int t = 0; t < r->templates->count; t++) {
    const rgs_template *found = &r->templates->list[t], *outer = r->now;
    if (strcmp(found->name, name) != 0) continue;
    if (r->partials == MAX_DEPTH) return fail(r, "holds itself, or templates are nested too deep", name);
    r->now = found;
    r->partials++;
    const bool good = render(r, 0, found->num_tags, found->text, found->text + strlen(found->text));
    r->now = outer;
    r->partials--;
    return good;
  }
  return fail(r, "there is no such template", name);
}

static bool render_inside(renderer *r, const json_t *value, int number) {
  const rgs_tag *open = &r->now->tags[number];
  if (r->depth == MAX_DEPTH) return fail(r, "sections are nested too deep", open->name);
  r->scope[r->depth++] = value;
  const bool good = render(r, number + 1, open->close, open->end, r->now->tags[open->close].begin);
  r->depth--;
  return good;
}

static bool render_section(renderer *r, const json_t *value, int number) {
  const rgs_tag *open = &r->now->tags[number];
  if (open->kind == '^') {
    return is_shown(value) || render(r, number + 1, open->close, open->end, r->now->tags[open->close].begin);
  }
  if (!is_shown(value)) return true;
  if (!json_is_array(value)) return render_inside(r, value, number);
  for (size_t i = 0; i < json_array_size(value); i++) {
    if (!render_inside(r, json_array_get(value, i), number)) return false;
  }
  return true;
}

static bool render_tag(renderer *r, int number) {
  const rgs_tag *tag = &r->now->tags[number];
  if (tag->kind == '!') return true;
  if (tag->kind == '>') return render_partial(r, tag->name);
  const json_t *value = look_up(r, tag->name);
  if (value == NULL) return fail(r, "nothing has this name", tag->name);
  switch (tag->kind) {
    case '#':
    case '^':
      return render_section(r, value, number);
    case '&':
      rge_text_add_bytes(r->out, json_is_string(value) ? json_string_value(value) : "", json_string_length(value));
      return true;
    case '@':
      rgs_add_json(value, r->out);
      return true;
    default:
      return add_value(r, tag, value);
  }
}

static bool render(renderer *r, int tag, int last, const char *from, const char *end) {
  const rgs_tag *tags = r->now->tags;
  while (tag < last) {
    rge_text_add_bytes(r->out, from, (size_t)(tags[tag].begin - from));
    if (!render_tag(r, tag)) return false;
    if (tags[tag].kind == '#' || tags[tag].kind == '^') tag = tags[tag].close;
    from = tags[tag++].end;
  }
  rge_text_add_bytes(r->out, from, (size_t)(end - from));
  return !r->out->failed || rgh_fail(r->why, "no memory");
}

bool rgs_render(const rgs_templates *templates, const char *name, const json_t *data, rge_text *out, rgh_message *why) {
  renderer r = {.templates = templates, .scope = {data}, .depth = 1, .out = out, .why = why};
  const bool good = render_partial(&r, name);
  rge_text_free(&r.formatted);
  return good;
}

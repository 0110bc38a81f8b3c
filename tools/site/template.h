/* template.h: pages from files of HTML with places for values. What a value holds can never become markup.
 *
 *   {{name}} {{a.b}} {{.}}   the value, escaped for text and for quoted attributes; null is nothing
 *   {{name|filter}}          the same, formatted: us, ratio, gb_per_s, percent, bytes, date, short
 *   {{#name}}...{{/name}}    once for each entry of a list; inside an object; once for any other value that is neither
 *                            null, false, empty nor the text ""
 *   {{^name}}...{{/name}}    where the above would give nothing
 *   {{&name}}                markup as it is: for charts, which the tool draws itself
 *   {{@name}}                the value as JSON inside a <script type="application/json">
 *   {{>name}}                another template
 *   {{! any text }}          a comment
 *
 * A name is looked for in the innermost section first. A name that nothing has is an error, so that a misspelt one does
 * not look like an empty value. The line break after a tag of a section, a comment or another template is left out. */
#ifndef ROPEGRAD_TOOLS_SITE_TEMPLATE_H
#define ROPEGRAD_TOOLS_SITE_TEMPLATE_H

#include <jansson.h>

#include "harness/base/message.h"
#include "harness/evidence/text.h"

enum { RGS_TAG_NAME = 64 };
typedef struct rgs_tag {
  char kind; /* '#', '^', '/', '&', '@', '>', '!', or 0: a value */
  char name[RGS_TAG_NAME], filter[RGS_TAG_NAME];
  const char *begin, *end; /* in the text: braces included, and the line break that is left out */
  int close;               /* of a section: the number of the tag that ends it */
} rgs_tag;

typedef struct rgs_template {
  char *name; /* of its file, without ".html" */
  char *text;
  rgs_tag *tags; /* in their order; into the text */
  int num_tags;
} rgs_template;

typedef struct rgs_templates {
  rgs_template *list;
  int count;
} rgs_templates;

/* Finds the tags of the text. False: one is broken or a section has no end, and *why names the template and the tag. */
bool rgs_template_compile(rgs_template *made, rgh_message *why);

/* Reads and compiles every .html file of the folder. */
bool rgs_templates_load(const char *folder, rgs_templates *templates, rgh_message *why);

/* Adds the page to *out. False: the template has a mistake, and *why names the template and the tag. ---- render.c */
bool rgs_render(const rgs_templates *templates, const char *name, const json_t *data, rge_text *out, rgh_message *why);

void rgs_templates_free(rgs_templates *templates);

/* The formats. ---- format.c */

/* Adds the value as the filter writes it, unescaped. False: there is no such filter. */
bool rgs_format(const char *filter, const json_t *value, rge_text *out);

/* Adds JSON that cannot end a script element or be taken for markup. */
void rgs_add_json(const json_t *value, rge_text *out);

#endif /* ROPEGRAD_TOOLS_SITE_TEMPLATE_H */

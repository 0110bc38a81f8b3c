/* page.h: the pages of the site. Each is a function that builds its data and hands it to rgs_page_write. */
#ifndef ROPEGRAD_TOOLS_SITE_PAGE_H
#define ROPEGRAD_TOOLS_SITE_PAGE_H

#include "tools/site/data.h"
#include "tools/site/folder.h"
#include "tools/site/site.h"
#include "tools/site/template.h"

typedef struct rgs_site {
  const rge_index *index;
  const rgs_site_request *request;
  rgs_boards boards;
  rgs_templates templates;
  rgs_folder folder;
} rgs_site;

/* Where a page lies. */
typedef struct rgs_place {
  const char *path;     /* "operators/x", without an ending */
  const char *template; /* its template's name */
  const char *title;
  const char *here; /* which entry of the navigation it belongs to */
} rgs_place;

/* Adds charts to the data of a page once it has been written as JSON: they are for the page alone. */
typedef void (*rgs_draw)(const rgs_site *site, const void *subject, json_t *data);

/* Writes path.json with `data`, then path.html with the template over it. Takes `data` over; draw may be NULL. */
bool rgs_page_write(const rgs_site *site, const rgs_place *place, json_t *data, rgs_draw draw, const void *subject,
                    rgh_message *why);

bool rgs_page_index(const rgs_site *site, rgh_message *why);
bool rgs_page_operator(const rgs_site *site, const rg_operator *op, rgh_message *why);
bool rgs_page_records(const rgs_site *site, rgh_message *why);
bool rgs_page_record(const rgs_site *site, const rge_record *record, rgh_message *why);
bool rgs_page_challenges(const rgs_site *site, rgh_message *why);
bool rgs_page_rules(const rgs_site *site, rgh_message *why);
bool rgs_search_write(const rgs_site *site, rgh_message *why);

/* The rows of the challenges page: each hardware that a record is wanted of, with its best ratio by operator. NULL: *why
 * says what is wrong with its list. */
json_t *rgs_challenges_json(const rgs_site *site, rgh_message *why);

/* The best of what others report for the operator, with the hardware; null: nothing. */
json_t *rgs_reported_best(const rge_index *index, const rg_operator *op);

/* The command that makes the record again, as one would type it; null: the record does not say. */
json_t *rgs_command_json(const rge_record *record);

#endif /* ROPEGRAD_TOOLS_SITE_PAGE_H */

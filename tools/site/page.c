#include "tools/site/page.h"

#include <stdio.h>
#include <string.h>

static json_t *navigation_json(const char *here, const char *root) {
  static const struct {
    const char *name, *page, *label;
  } entries[] = {{"index", "index", "Operators"},
                 {"records", "records", "Records"},
                 {"challenges", "challenges", "Challenges"},
                 {"rules", "rules", "How records are decided"}};
  json_t *list = json_array();
  for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
    char address[64];
    snprintf(address, sizeof address, "%s%s.html", root, entries[e].page);
    json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "address", address, "label", entries[e].label, "here",
                                          strcmp(entries[e].name, here) == 0));
  }
  return list;
}

/* What the frame around every page needs, over the page's own data. Takes `data` over. */
static json_t *page_json(const rgs_site *site, const rgs_place *place, json_t *data, const rge_text *embedded) {
  const char *root = strchr(place->path, '/') != NULL ? "../" : "";
  const char *name = strrchr(place->path, '/');
  char beside[RGS_PATH_BYTES];
  snprintf(beside, sizeof beside, "%s.json", name != NULL ? name + 1 : place->path);
  return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:s%}", "page_title", place->title, "root", root, "beside", beside,
                   "navigation", navigation_json(place->here, root), "tool_version", site->request->version, "data",
                   data, "embedded", embedded->bytes, embedded->length);
}

static bool write_file(const rgs_site *site, const rgs_place *place, const char *ending, const rge_text *text,
                       rgh_message *why) {
  char name[RGS_PATH_BYTES];
  snprintf(name, sizeof name, "%s%s", place->path, ending);
  return rgs_folder_write(&site->folder, name, text->bytes, text->length, why);
}

bool rgs_page_write(const rgs_site *site, const rgs_place *place, json_t *data, rgs_draw draw, const void *subject,
                    rgh_message *why) {
  rge_text json = {0}, html = {0};
  json_t *page = NULL;
  bool good = data != NULL;
  if (good) rgs_add_json(data, &json);
  good = good && !json.failed;
  if (good && draw != NULL) draw(site, subject, data);
  if (good) page = page_json(site, place, data, &json);
  if (page == NULL) {
    json_decref(data);
    good = rgh_fail(why, "%s: no memory", place->path);
  }
  good = good && rgs_render(&site->templates, place->template, page, &html, why) &&
         write_file(site, place, ".json", &json, why) && write_file(site, place, ".html", &html, why);
  rge_text_free(&json);
  rge_text_free(&html);
  json_decref(page);
  return good;
}

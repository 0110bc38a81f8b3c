#include "tools/site/site.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/site/page.h"
#include "tools/site/passes.h"

/* Names every file of a site, so that a later one replaces these and nothing else. */
static const char LIST[] = "ropegrad-site.txt";

static bool write_record(const rgs_site *site, const rge_record *record, rgh_message *why) {
  char name[256];
  snprintf(name, sizeof name, "records/%s.record.json", record->id);
  return rgs_page_record(site, record, why) && rgs_folder_copy(&site->folder, name, record->path, why);
}

/* The pages that there is one of. */
static bool (*const single[])(const rgs_site *site, rgh_message *why) = {
    rgs_search_write, rgs_page_records, rgs_page_index, rgs_page_challenges, rgs_page_rules};
enum { NUM_SINGLE = sizeof single / sizeof single[0], NUM_BEFORE_RECORDS = NUM_SINGLE + RG_NUM_OPERATORS };

/* The largest pages have the lowest numbers, so that no thread is left alone with one at the end. */
static bool write_page(const rgs_site *site, int number, rgh_message *why) {
  if (number < RG_NUM_OPERATORS) return rgs_page_operator(site, rgs_operator_at(number), why);
  if (number < NUM_BEFORE_RECORDS) return single[number - RG_NUM_OPERATORS](site, why);
  return write_record(site, &site->index->records[number - NUM_BEFORE_RECORDS], why);
}

static bool write_pages(const rgs_site *site, rgh_message *why) {
  const int count = NUM_BEFORE_RECORDS + site->index->num_records;
  bool good = true;
#pragma omp parallel for schedule(dynamic)
  for (int number = 0; number < count; number++) {
    rgh_message own;
    bool go;
#pragma omp atomic read
    go = good;
    if (!go || write_page(site, number, &own)) continue;
#pragma omp critical
    {
      if (good) *why = own;
#pragma omp atomic write
      good = false;
    }
  }
  return good;
}

static bool write_fixed(const rgs_site *site, const char *name, rgh_message *why) {
  char path[RGS_PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", site->request->templates, name);
  return rgs_folder_copy(&site->folder, name, path, why);
}

static bool write_all(const rgs_site *site, rgh_message *why) {
  return rgs_folder_below(&site->folder, "operators", why) && rgs_folder_below(&site->folder, "records", why) &&
         write_fixed(site, "site.css", why) && write_fixed(site, "site.js", why) && write_pages(site, why);
}

bool rgs_site_write(const rge_index *index, const rgs_site_request *request, rgh_message *why) {
  rgs_site site = {.index = index, .request = request};
  if (!rgs_templates_load(request->templates, &site.templates, why)) return false;
  bool good = rgs_boards_make(index, &site.boards) || rgh_fail(why, "no memory");
  good = good && rgs_folder_begin(request->out, LIST, &site.folder, why);
  if (good) {
    json_object_seed(0); /* before several threads use jansson */
    good = write_all(&site, why) && rgs_folder_finish(&site.folder, why);
    if (!good) rgs_folder_abandon(&site.folder);
  }
  rgs_templates_free(&site.templates);
  rgs_boards_free(&site.boards);
  return good;
}

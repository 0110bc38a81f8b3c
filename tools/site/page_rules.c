#include "tools/site/page.h"

/* The page is its template's text; its data is what a program may want to know of the rules. */
bool rgs_page_rules(const rgs_site *site, rgh_message *why) {
  json_t *tiers = json_array();
  for (int t = 0; t < RGE_NUM_TIERS; t++) json_array_append_new(tiers, json_string(rge_tier_name((rge_tier)t)));
  json_t *data = json_pack("{s:o, s:o, s:s, s:s}", "tiers", tiers, "suites", rgs_suites_json(), "statistic",
                           "mean over the repetitions of the median of a repetition", "aggregate",
                           "geometric mean over the cases");
  const rgs_place place = {"rules", "rules", "How records are decided", "rules"};
  return rgs_page_write(site, &place, data, NULL, NULL, why);
}

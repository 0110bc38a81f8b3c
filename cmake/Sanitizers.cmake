# Sanitizers see a whole program or nothing, so these options hold for every target.
if(ROPEGRAD_SANITIZE)
  add_compile_options(-fsanitize=${ROPEGRAD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ROPEGRAD_SANITIZE})
endif()
if(ROPEGRAD_BUILD_FUZZERS)
  # Coverage counters, by which libFuzzer finds its way; the targets in fuzz/ link the driver itself.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

foreach(part gather ledger lending link staging order slots source)
  fairlap_test(test_feed_${part} USES fairlap_feed)
endforeach()
# Against the fake driver, opened by path as a user's process opens the real one.
foreach(part link feeding faults)
  fairlap_test(test_cuda_link_${part} USES fairlap_cuda_link fairlap_fake_cuda fairlap_fake_cupti)
  target_compile_definitions(
    test_cuda_link_${part} PRIVATE FAIRLAP_FAKE_CUDA="$<TARGET_FILE:fairlap_fake_cuda>"
                                   FAIRLAP_FAKE_CUPTI="$<TARGET_FILE:fairlap_fake_cupti>")
endforeach()

foreach(part streams events gates capture memory contexts faults)
  fairlap_test(test_fake_cuda_${part} USES fairlap_fake_cuda)
endforeach()
if(NOT APPLE)
  fairlap_test(test_fake_cuda_lookup USES fairlap_fake_cuda)
  add_dependencies(test_fake_cuda_lookup fairlap_fake_cuda_11 fairlap_fake_cuda_10)
  target_compile_definitions(
    test_fake_cuda_lookup
    PRIVATE FAKE_CUDA="$<TARGET_FILE:fairlap_fake_cuda>" FAKE_CUDA_11="$<TARGET_FILE:fairlap_fake_cuda_11>"
            FAKE_CUDA_10="$<TARGET_FILE:fairlap_fake_cuda_10>")
  fairlap_test(test_cuda_older_drivers USES fairlap_cuda fairlap_fake_cuda fairlap_fake_cupti)
  add_dependencies(test_cuda_older_drivers fairlap_fake_cuda_11 fairlap_fake_cuda_10)
  target_compile_definitions(
    test_cuda_older_drivers
    PRIVATE FAIRLAP_FAKE_CUDA="$<TARGET_FILE:fairlap_fake_cuda>"
            FAIRLAP_FAKE_CUPTI="$<TARGET_FILE:fairlap_fake_cupti>"
            FAIRLAP_FAKE_CUDA_11="$<TARGET_FILE:fairlap_fake_cuda_11>"
            FAIRLAP_FAKE_CUDA_10="$<TARGET_FILE:fairlap_fake_cuda_10>")
endif()
fairlap_test(test_fake_cupti USES fairlap_fake_cupti)
fairlap_test(test_fake_nvml USES fairlap_fake_nvml)

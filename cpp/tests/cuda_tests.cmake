# The engine's CUDA part against the fakes. Each program opens them by path, as a user's process opens the real ones.
foreach(part sequence tables attribution streams gate run graph faults activity)
  fairlap_test(test_cuda_${part} USES fairlap_cuda fairlap_fake_cuda fairlap_fake_cupti)
  target_compile_definitions(
    test_cuda_${part} PRIVATE FAIRLAP_FAKE_CUDA="$<TARGET_FILE:fairlap_fake_cuda>"
                              FAIRLAP_FAKE_CUPTI="$<TARGET_FILE:fairlap_fake_cupti>")
endforeach()

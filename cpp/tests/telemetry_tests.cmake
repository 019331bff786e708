foreach(part ring files energy repeated)
  fairlap_test(test_telemetry_${part} USES fairlap_telemetry)
endforeach()
# Against the fake NVML, opened by path as a user's process opens the real one.
foreach(part nvml sampler process calibration waveforms)
  fairlap_test(test_telemetry_${part} USES fairlap_telemetry fairlap_fake_nvml)
  target_compile_definitions(test_telemetry_${part} PRIVATE FAIRLAP_FAKE_NVML="$<TARGET_FILE:fairlap_fake_nvml>")
endforeach()
# Against the fake driver, whose clock is its own.
fairlap_test(test_telemetry_alignment USES fairlap_telemetry fairlap_fake_cuda fairlap_fake_cupti)
target_compile_definitions(
  test_telemetry_alignment PRIVATE FAIRLAP_FAKE_CUDA="$<TARGET_FILE:fairlap_fake_cuda>"
                                   FAIRLAP_FAKE_CUPTI="$<TARGET_FILE:fairlap_fake_cupti>")

foreach(part ring files energy)
  fairlap_test(test_telemetry_${part} USES fairlap_telemetry)
endforeach()
# Against the fake NVML, opened by path as a user's process opens the real one.
foreach(part nvml sampler process calibration)
  fairlap_test(test_telemetry_${part} USES fairlap_telemetry fairlap_fake_nvml)
  target_compile_definitions(test_telemetry_${part} PRIVATE FAIRLAP_FAKE_NVML="$<TARGET_FILE:fairlap_fake_nvml>")
endforeach()

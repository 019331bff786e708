foreach(part ring files)
  fairlap_test(test_telemetry_${part} USES fairlap_telemetry)
endforeach()

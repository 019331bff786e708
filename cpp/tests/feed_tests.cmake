foreach(part gather order slots source)
  fairlap_test(test_feed_${part} USES fairlap_feed)
endforeach()

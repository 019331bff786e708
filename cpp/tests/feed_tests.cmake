foreach(part gather ledger lending staging order slots source)
  fairlap_test(test_feed_${part} USES fairlap_feed)
endforeach()

package schemas

// DeadLetter is a row of the dead-letter ledger: a pointer to a record that could not be read, never the
// record itself. The source still holds it.
type DeadLetter struct {
	Topic      string `parquet:"topic,dict"`   // k_ token
	Generation int32  `parquet:"generation"`   // generation of the topic: rises when it was recreated
	Partition  int32  `parquet:"partition"`    // partition of the topic
	Offset     int64  `parquet:"offset,delta"` // offset of the message
	Index      int32  `parquet:"index"`        // place inside the message, from 0
	Reason     string `parquet:"reason,dict"`  // why, from a closed list: the Dead… constants of ingest
	Gateway    string `parquet:"gateway,dict"` // decoder that was asked for
	// SizeBytesLog2 is the record's size as the exponent of the next power of two.
	SizeBytesLog2 int32 `parquet:"size_bytes_log2"`
	// Fingerprint is a keyed token of the record's bytes: equal records have equal ones. Empty where the bytes
	// were not read.
	Fingerprint string `parquet:"fingerprint"`
}

package schemas

// DeadLetter is a row of the dead-letter ledger: a pointer to a record that could not be read, never the
// record itself. The source still holds it.
type DeadLetter struct {
	Topic      string `parquet:"topic,dict"` // k_ token
	Generation int32  `parquet:"generation"`
	Partition  int32  `parquet:"partition"`
	Offset     int64  `parquet:"offset,delta"`
	Index      int32  `parquet:"index"`       // place inside the message, from 0
	Reason     string `parquet:"reason,dict"` // closed enumeration: the Dead… constants of ingest
	Gateway    string `parquet:"gateway,dict"`
	// SizeBytesLog2 is the record's size as the exponent of the next power of two.
	SizeBytesLog2 int32 `parquet:"size_bytes_log2"`
	// Fingerprint is a keyed token of the record's bytes: equal records have equal ones. Empty where the bytes
	// were not read.
	Fingerprint string `parquet:"fingerprint"`
}

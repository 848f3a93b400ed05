package schemas

import _ "embed"

//go:embed mapping.schema.json
var mappingSchema string

// MappingSchema is the JSON Schema (draft 2020-12) of the mapping files of `tailgate ingest --format
// mapped:FILE`.
func MappingSchema() string { return mappingSchema }

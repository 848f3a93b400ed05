package schemas

import _ "embed"

//go:embed mapping.schema.json
var mappingSchema string

// MappingSchema is the JSON Schema (draft 2020-12) of the mapping files of `tailgate ingest --format
// mapped:FILE`.
func MappingSchema() string { return mappingSchema }

//go:embed capacity.schema.json
var capacitySchema string

// CapacitySchema is the JSON Schema of the plan files of `tailgate capacity`.
func CapacitySchema() string { return capacitySchema }

//go:embed refresh.schema.json
var refreshSchema string

// RefreshSchema is the JSON Schema of the files of `tailgate refresh`.
func RefreshSchema() string { return refreshSchema }

//go:embed privacy.schema.json
var privacySchema string

// PrivacySchema is the JSON Schema of privacy.json, which a nightly job writes for each day.
func PrivacySchema() string { return privacySchema }

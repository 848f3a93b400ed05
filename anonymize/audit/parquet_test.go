package audit_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tailgate/anonymize/audit"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

const secret = "Kestrel four over the harbour"

// request is a row as ingest writes it.
func request(i int) schemas.Request {
	return schemas.Request{
		RequestKey: int64(i), ArrivedAt: time.Unix(1_790_000_000, 0).UTC(), TQuality: schemas.TimeStart, Gateway: "litellm", Op: schemas.OpChat,
		Status: schemas.StatusOK, Model: "m_abcdefghijklm", Class: new(schemas.ClassLongContext), Tenant: new("t_abcdefghijklm"),
		Session: new("s_abcdefghijklm"), RequestID: new("r_abcdefghijklm"), InputTokensSource: schemas.TokensProvider,
		OutputTokensSource: schemas.TokensAbsent, CachedTokensSource: schemas.TokensAbsent, ReasoningTokensSource: schemas.TokensAbsent,
		Reconciled: schemas.ReconciledEqual, PromptState: schemas.PromptFull, Topic: "k_abcdefghijklm", HashIDs: []int64{1, 2, 3},
	}
}

func footer() map[string]string {
	return schemas.Footer{Schema: schemas.TableRequests, Tool: "devel", Seed: "", BlockSize: "16", Tokenizer: "chars4/1",
		Epoch: "b-20260102T030405.000000Z"}.Map()
}

// lakeFile writes requests, changed by change, and returns the file's bytes.
func lakeFile(t testing.TB, kv map[string]string, change func(i int, r *schemas.Request)) []byte {
	t.Helper()
	rows := make([]schemas.Request, 100)
	for i := range rows {
		rows[i] = request(i)
		change(i, &rows[i])
	}
	data, err := parquetio.Encode(kv, rows)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func clean(int, *schemas.Request) {}

// Each row writes text to one place of a file that says it is a day of the lake: the audit must say where.
func TestLeaksInParquet(t *testing.T) {
	for _, tc := range []struct {
		name   string
		data   func(t *testing.T) []byte
		canary bool   // found by the canary, else by the allow-list
		place  string // one of the places where it must be found
		column string
	}{
		{"footer value", func(t *testing.T) []byte {
			kv := footer()
			kv[schemas.KeyTool] = secret
			return lakeFile(t, kv, clean)
		}, true, audit.PlaceFooter, schemas.KeyTool},
		{"footer value, allow-list", func(t *testing.T) []byte {
			kv := footer()
			kv[schemas.KeyTool] = "was the lamp lit?"
			return lakeFile(t, kv, clean)
		}, false, audit.PlaceFooter, schemas.KeyTool},
		{"footer key", func(t *testing.T) []byte {
			kv := footer()
			kv["note"] = "lamp"
			return lakeFile(t, kv, clean)
		}, false, audit.PlaceFooter, "note"},
		{"dictionary", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(i int, r *schemas.Request) {
				if i == 50 {
					r.Tenant = new(secret)
				}
			})
		}, true, audit.PlaceDictionary, "tenant"},
		{"dictionary, allow-list", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(i int, r *schemas.Request) {
				if i == 50 {
					r.Tenant = new("t_lamp")
				}
			})
		}, false, audit.PlaceDictionary, "tenant"},
		{"page", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(i int, r *schemas.Request) {
				if i == 50 {
					r.RequestID = new(secret)
				}
			})
		}, true, audit.PlacePage, "request_id"},
		{"value, allow-list", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(i int, r *schemas.Request) {
				if i == 50 {
					r.RequestID = new("x_lamp")
				}
			})
		}, false, audit.PlaceValue, "request_id"},
		{"label", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(_ int, r *schemas.Request) { r.Model = "lamp" })
		}, false, audit.PlaceDictionary, "model"},
		{"minimum of a page", func(t *testing.T) []byte {
			return lakeFile(t, footer(), func(_ int, r *schemas.Request) { r.Status = "a lamp" })
		}, false, audit.PlaceStatistics, "status"},
		{"statistics alone", func(t *testing.T) []byte {
			return withFooter(t, lakeFile(t, footer(), clean), func(m *format.FileMetaData) {
				m.RowGroups[0].Columns[0].MetaData.Statistics.MaxValue = []byte(secret)
			})
		}, true, audit.PlaceStatistics, "request_key"},
		{"statistics alone, allow-list", func(t *testing.T) []byte {
			return withFooter(t, lakeFile(t, footer(), clean), func(m *format.FileMetaData) {
				for i := range m.RowGroups[0].Columns {
					if c := &m.RowGroups[0].Columns[i].MetaData; c.PathInSchema[0] == "op" {
						c.Statistics.MinValue = []byte("alamp")
					}
				}
			})
		}, false, audit.PlaceStatistics, "op"},
		{"created by", func(t *testing.T) []byte {
			return withFooter(t, lakeFile(t, footer(), clean), func(m *format.FileMetaData) { m.CreatedBy = secret })
		}, true, audit.PlaceFooter, ""},
		{"metadata of a column", func(t *testing.T) []byte {
			return withFooter(t, lakeFile(t, footer(), clean), func(m *format.FileMetaData) {
				m.RowGroups[0].Columns[3].MetaData.KeyValueMetadata = thrift.Slice[format.KeyValue]{{Key: "k", Value: "v"}}
			})
		}, false, audit.PlaceStatistics, "parent_request_id"},
		{"numbers that hide it", func(t *testing.T) []byte { // delta-coded, so that no page has its bytes
			return lakeFile(t, footer(), func(i int, r *schemas.Request) {
				r.Offset = int64(i)
				if at := 8 * (i - 40); at >= 0 && at+8 <= len(secret) {
					r.Offset = int64(binary.LittleEndian.Uint64([]byte(secret)[at:]))
				}
			})
		}, true, audit.PlaceValue, "offset"},
		{"bytes that nothing names", func(t *testing.T) []byte {
			data := lakeFile(t, footer(), clean)
			start := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
			return append(append(append([]byte{}, data[:start]...), bytes.Repeat([]byte{0xa7, 3}, 40)...), data[start:]...)
		}, false, audit.PlaceBytes, ""},
		{"unknown table", func(t *testing.T) []byte {
			kv := footer()
			kv[schemas.KeySchema] = "lamps"
			return lakeFile(t, kv, clean)
		}, false, audit.PlaceFooter, ""},
		{"unknown column", func(t *testing.T) []byte {
			type row struct {
				schemas.Request
				Note int64 `parquet:"note"`
			}
			data, err := parquetio.Encode(footer(), []row{{Request: request(0)}})
			if err != nil {
				t.Fatal(err)
			}
			return data
		}, false, audit.PlaceSchema, "note"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			data := tc.data(t)
			put(t, dir, "requests.parquet", data)
			report := run(t, dir, secret)
			hit := false
			for _, f := range report.Findings {
				hit = hit || f.Place == tc.place && f.Column == tc.column && (f.What == audit.WhatCanary) == tc.canary
				if !tc.canary && f.What == audit.WhatCanary {
					t.Errorf("a canary that is not there: %+v", f)
				}
			}
			if !hit || fault.Of(report.Err()) != fault.Key || len(report.Unreadable) > 0 {
				t.Errorf("not in %s of %q: %+v %v", tc.place, tc.column, report.Findings, report.Unreadable)
			}
		})
	}
}

// withFooter changes the footer of a Parquet file.
func withFooter(t *testing.T, data []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	size := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	start := len(data) - 8 - size
	var protocol thrift.CompactProtocol
	var m format.FileMetaData
	if err := thrift.Unmarshal(&protocol, data[start:start+size], &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	end, err := thrift.Marshal(&protocol, &m)
	if err != nil {
		t.Fatal(err)
	}
	out := append(append([]byte{}, data[:start]...), end...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(end)))
	return append(out, "PAR1"...)
}

func TestCleanTablesPass(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "day=2026-09-21/requests.parquet", lakeFile(t, footer(), clean))
	for _, table := range schemas.Tables() {
		file, err := os.Create(filepath.Join(dir, table.Name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		kv := footer()
		kv[schemas.KeySchema] = table.Name
		options := []parquet.WriterOption{parquet.SchemaOf(table.Row)}
		for k, v := range kv {
			options = append(options, parquet.KeyValueMetadata(k, v))
		}
		w := parquet.NewWriter(file, options...)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	report := run(t, dir, secret)
	if report.Found != 0 || report.Err() != nil || report.Tables[schemas.TableRequests] != 2 || report.Values == 0 || report.Pages == 0 {
		t.Errorf("%+v", report)
	}
}

// A damaged file is said to be unreadable, or audited: it never passes as if it were whole, and never ends the
// audit.
func TestDamagedParquet(t *testing.T) {
	data := lakeFile(t, footer(), clean)
	dir := t.TempDir()
	for at := 4; at < len(data); at += len(data)/25 + 1 {
		broken := bytes.Clone(data)
		for i := at; i < min(at+16, len(broken)); i++ {
			broken[i] ^= 0x5a
		}
		put(t, dir, "a.parquet", broken)
		run(t, dir, secret)
		put(t, dir, "a.parquet", data[:at])
		if report := run(t, dir, secret); len(report.Unreadable) == 0 {
			t.Errorf("cut at %d: %+v", at, report)
		}
	}
}

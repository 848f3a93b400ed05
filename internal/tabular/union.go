package tabular

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"tailgate/internal/fault"
)

// union gathers the columns of files.
type union struct {
	files  int
	fields []arrow.Field
	at     map[string]int    // column → place in fields
	from   map[string]string // column → the file that it was first seen in
	meta   map[string]string // that all files have in common
}

// add takes in the columns of one file.
func (u *union) add(ctx context.Context, f File) (err error) {
	o, err := open(ctx, f)
	if err != nil {
		return err
	}
	defer o.Close()
	defer func() {
		if p := recover(); p != nil {
			err = o.src.Fault(f.Name, broken(fmt.Errorf("%v", p)))
		}
	}()
	schema, err := o.Schema()
	if err != nil {
		return o.src.Fault(f.Name, broken(err))
	}
	u.footer(o)
	seen := map[string]bool{}
	for _, field := range schema.Fields() {
		if seen[field.Name] {
			return fault.Mark(fmt.Errorf("reading %s: two columns are named %q", f.Name, field.Name), fault.Data, "")
		}
		seen[field.Name] = true
		if err := u.column(f.Name, field); err != nil {
			return err
		}
	}
	for i := range u.fields {
		u.fields[i].Nullable = u.fields[i].Nullable || !seen[u.fields[i].Name]
	}
	u.files++
	return nil
}

func (u *union) column(file string, field arrow.Field) error {
	field.Metadata = arrow.Metadata{}
	if d, ok := field.Type.(*arrow.DictionaryType); ok {
		field.Type = d.ValueType
	}
	i, known := u.at[field.Name]
	if !known {
		u.at[field.Name], u.from[field.Name] = len(u.fields), file
		field.Nullable = field.Nullable || u.files > 0
		u.fields = append(u.fields, field)
		return nil
	}
	if !arrow.TypeEqual(u.fields[i].Type, field.Type) {
		return fault.Mark(fmt.Errorf("reading %s: column %s is %s, and in %s it is %s", file, field.Name, field.Type, u.from[field.Name], u.fields[i].Type),
			fault.Data, "read them one at a time")
	}
	u.fields[i].Nullable = u.fields[i].Nullable || field.Nullable
	return nil
}

// arrowSchemaKey is what Arrow's own writers keep beside the Parquet schema: it is not theirs any more.
const arrowSchemaKey = "ARROW:schema"

func (u *union) footer(o *opened) {
	meta := o.metadata()
	if u.files == 0 {
		u.meta = meta
		delete(u.meta, arrowSchemaKey)
		return
	}
	for k, v := range u.meta {
		if got, ok := meta[k]; !ok || got != v {
			delete(u.meta, k)
		}
	}
}

// metadata is the key-value metadata of the footer.
func (o *opened) metadata() map[string]string {
	kv := o.ParquetReader().MetaData().KeyValueMetadata()
	out := map[string]string{}
	for i, k := range kv.Keys() {
		out[k] = kv.Values()[i]
	}
	return out
}

// choose returns the named columns, or all.
func (u *union) choose(names []string) ([]arrow.Field, error) {
	if len(names) == 0 {
		if len(u.fields) == 0 {
			return nil, fault.Mark(errors.New("there are no columns"), fault.Data, "")
		}
		return u.fields, nil
	}
	var fields []arrow.Field
	var errs []error
	for _, name := range names {
		if i, ok := u.at[name]; ok {
			fields = append(fields, u.fields[i])
		} else {
			errs = append(errs, fmt.Errorf("there is no column %q", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fault.Mark(err, fault.Usage, "there are "+u.names())
	}
	return fields, nil
}

func (u *union) names() string {
	var names []string
	for _, f := range u.fields {
		names = append(names, string(appendSafe(nil, f.Name)))
	}
	return strings.Join(names, ", ")
}

// plain is a column without a dictionary: dictionaries differ from batch to batch, which Arrow's files do not allow.
func plain(a arrow.Array) (arrow.Array, error) {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a, nil
	}
	b := array.NewBuilder(memory.DefaultAllocator, d.Dictionary().DataType())
	b.Reserve(d.Len())
	for i := range d.Len() {
		if d.IsNull(i) {
			b.AppendNull()
			continue
		}
		v, err := scalar.GetScalar(d.Dictionary(), d.GetValueIndex(i))
		if err != nil {
			return nil, err
		}
		if err := scalar.Append(b, v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

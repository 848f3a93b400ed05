package anonymize

import (
	"errors"
	"fmt"
	"strings"

	"tailgate/internal/fault"
)

// Limits of a block.
const (
	DefaultBlockSize = 16
	MaxBlockSize     = 4096
)

// maxMemo bounds Options.Memo.
const maxMemo = 16 << 30

// Options choose how prompts become blocks. The zero value needs no vocabulary: chars4 over the plain template.
type Options struct {
	Tokenizer string // a Tokenizer… constant, or a path; "" = chars4
	Template  string // as ParseTemplate reads it; "" = TemplatePlain
	Specials  string // SpecialsOwn or SpecialsAll; "" = what the template's engines do
	Models    *Models

	BlockSize   int   // tokens per block; 0 = DefaultBlockSize
	TenantScope bool  // prompts of two tenants share nothing, whatever their text
	Memo        int64 // bytes that remember repeated text; 0 = DefaultMemo, below 0 = none
}

// Validate reports every fault of o. It opens no file: NewHasher does.
func (o Options) Validate() error {
	errs := []error{checkTokenizer(o.Tokenizer)}
	if o.Template != "" && !strings.HasPrefix(o.Template, jinjaPrefix) {
		_, err := ParseTemplate(o.Template)
		errs = append(errs, err)
	}
	if o.Specials != "" && o.Specials != SpecialsOwn && o.Specials != SpecialsAll {
		errs = append(errs, fmt.Errorf("specials %q are neither %s nor %s", o.Specials, SpecialsOwn, SpecialsAll))
	}
	if o.BlockSize < 0 || o.BlockSize > MaxBlockSize {
		errs = append(errs, fmt.Errorf("block_size %d must be between 1 and %d", o.BlockSize, MaxBlockSize))
	}
	if o.Memo > maxMemo {
		errs = append(errs, fmt.Errorf("memo of %d bytes is more than %d", o.Memo, int64(maxMemo)))
	}
	err := errors.Join(errs...)
	return fault.Mark(err, fault.Usage, fault.Hint(err))
}

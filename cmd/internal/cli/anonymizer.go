package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/smallfile"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// anonymizerFlags say how prompts become block ids; ingest and reprocess have them.
type anonymizerFlags struct {
	keys, epoch                   string
	tokenizer, template, specials string
	models, scope                 string
	memo                          sizeFlag
}

// registerKeys adds the flags that say which keys are used.
func (f *anonymizerFlags) registerKeys(fl *pflag.FlagSet) {
	fl.StringVar(&f.keys, "keys", "", keysUsage)
	fl.StringVar(&f.epoch, "epoch", "auto", "epoch of the block key; auto takes the newest")
}

func (f *anonymizerFlags) register(fl *pflag.FlagSet) {
	f.memo = anonymize.DefaultMemo
	fl.StringVar(&f.tokenizer, "tokenizer", anonymize.TokenizerO200k, "o200k, cl100k, the path of the served model's tokenizer.json, or chars4 and bytes, which need no vocabulary")
	fl.StringVar(&f.template, "template", anonymize.TemplatePlain, "how the served model writes a chat as text: plain, chatml, llama3, or jinja:FILE with its chat template")
	fl.StringVar(&f.specials, "template-specials", "", "what a control token's text in a prompt is: own (text) or all (the token) (default: as the template's engines do)")
	fl.StringVar(&f.models, "models", "", "YAML file that chooses tokenizer and template by model")
	fl.StringVar(&f.scope, "block-scope", "model", "who can share blocks: model, or tenant (a tenant's prompts of a model only)")
	fl.Var(&f.memo, "memo", "memory that remembers repeated text; 0 remembers nothing")
}

// options reads the flags and the models file; every fault is listed.
func (f *anonymizerFlags) options() (anonymize.Options, error) {
	o := anonymize.Options{Tokenizer: f.tokenizer, Template: f.template, Specials: f.specials, Memo: int64(f.memo)}
	var errs []error
	if f.keys == "" {
		errs = append(errs, errors.New("--keys is missing"))
	}
	switch f.scope {
	case "model":
	case "tenant":
		o.TenantScope = true
	default:
		errs = append(errs, fmt.Errorf("--block-scope: %q is neither model nor tenant", f.scope))
	}
	if o.Memo == 0 {
		o.Memo = -1
	}
	if f.models != "" {
		data, err := smallfile.Config(f.models)
		if err == nil {
			o.Models, err = anonymize.ParseModels(f.models, data)
		}
		errs = append(errs, err)
	}
	return o, allFaults(append(errs, o.Validate())...)
}

// tellSettings prints how prompts become block ids. It comes after the source has opened: a run that cannot begin
// prints its error and nothing else.
func (a *app) tellSettings(h *anonymize.Hasher) {
	for _, s := range h.Settings() {
		a.note("%s", s)
	}
}

// anonymizer loads the keys and vocabularies, and says in the footer what they give. The hasher is to be closed.
func (a *app) anonymizer(ctx context.Context, f *anonymizerFlags, ao anonymize.Options, o *ingest.Options) (*anonymize.Hasher, error) {
	keys, err := a.loadKeys(ctx, f.keys, f.epoch)
	if err != nil {
		return nil, err
	}
	hasher, err := anonymize.NewHasher(keys, ao)
	if err != nil {
		return nil, err
	}
	o.Anonymizer = hasher
	o.Footer = schemas.Footer{Tool: version.String(), BlockSize: strconv.Itoa(hasher.BlockSize()), Epoch: hasher.Epoch(),
		Tokenizer: hasher.TokenizerID(), Template: hasher.TemplateID(), Models: hasher.ModelsID()}
	return hasher, nil
}

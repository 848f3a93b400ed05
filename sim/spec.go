package sim

import (
	"errors"
	"fmt"
	"strings"

	"tailgate/internal/fault"
)

// ParseSpec reads the engine grammar
//
//	[sim:] [PRESET] [,key=value]…       step model; no preset = DefaultPreset
//	[sim:] fixed:service=300ms[,slots=1][,key=value]…
//
// Keys that are absent keep the preset's value; max_model_len falls to kv_tokens where that is smaller. Every
// fault is reported at once, marked as wrong usage; an unknown preset or key lists those that exist.
func ParseSpec(spec string) (Config, error) {
	rest := strings.TrimPrefix(spec, "sim:")
	var c Config
	var errs []error
	var pairs []string
	if body, ok := strings.CutPrefix(rest, fixedPreset+":"); ok || rest == fixedPreset {
		c = fixedConfig()
		if ok {
			pairs = strings.Split(body, ",")
		}
	} else {
		name, keys, _ := strings.Cut(rest, ",")
		if strings.Contains(name, "=") {
			name, keys = "", rest
		}
		var err error
		if c, err = presetConfig(name); err != nil {
			errs = append(errs, err)
		}
		if keys != "" {
			pairs = strings.Split(keys, ",")
		}
	}
	given, keyErrs := setKeys(&c, pairs)
	errs = append(errs, keyErrs...)
	if c.Preset == fixedPreset && !given["service"] {
		errs = append(errs, errors.New("a fixed engine needs service, such as fixed:service=300ms"))
	}
	if c.Preset != fixedPreset && !given["max_model_len"] {
		c.MaxModelLen = int(min(int64(c.MaxModelLen), c.KVTokens))
	}
	if len(errs) == 0 {
		errs = append(errs, c.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, fault.Mark(fmt.Errorf("reading engine spec %q: %w", spec, err), fault.Usage, "")
	}
	return c.withDefaults(), nil
}

// presetConfig returns the preset's config; on an unknown name the default's, so that the keys can be checked.
func presetConfig(name string) (Config, error) {
	if name == "" {
		name = DefaultPreset
	}
	var names []string
	var fallback Config
	for _, p := range Presets() {
		if p.Name == name {
			return p.Config, nil
		}
		if p.Name == DefaultPreset {
			fallback = p.Config
		}
		names = append(names, p.Name)
	}
	return fallback, fmt.Errorf("unknown preset %q; there are %s, and fixed:service=…", name, strings.Join(names, ", "))
}

// setKeys applies key=value pairs and returns the names that were given.
func setKeys(c *Config, pairs []string) (map[string]bool, []error) {
	var errs []error
	fixed := c.Preset == fixedPreset
	known := map[string]Key{}
	var names []string
	for _, k := range Keys() {
		if fixed && k.Fixed || !fixed && k.Steps {
			known[k.Name] = k
			names = append(names, k.Name)
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		k, exists := known[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%q is not key=value", pair))
		case !exists:
			errs = append(errs, fmt.Errorf("unknown key %q; there are %s", name, strings.Join(names, ", ")))
		case given[name]:
			errs = append(errs, fmt.Errorf("%s is given twice", name))
		default:
			given[name] = true
			if err := k.set(c, value); err != nil {
				errs = append(errs, fmt.Errorf("%s=%s: %w", name, value, err))
			}
		}
	}
	return given, errs
}

// String returns the shortest spec that ParseSpec reads back as c. A config of one's own (Preset "") is written
// as changes to DefaultPreset.
func (c Config) String() string {
	c = c.withDefaults()
	fixed := c.Service > 0
	base, sep := fixedConfig(), ":"
	spec := "sim:" + fixedPreset
	if !fixed {
		// An unknown name falls back to the default preset's config.
		base, _ = presetConfig(c.Preset)
		spec, sep = "sim:"+base.Preset, ","
	}
	for _, k := range Keys() {
		if fixed && !k.Fixed || !fixed && !k.Steps {
			continue
		}
		if v := k.get(&c); v != k.get(&base) {
			spec += sep + k.Name + "=" + v
			sep = ","
		}
	}
	return spec
}

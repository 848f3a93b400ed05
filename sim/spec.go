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
//	[sim:] queue:service=8s,dist=lognormal,cv=1[,slots=32][,key=value]…
//
// Keys that are absent keep the preset's value; max_model_len falls to kv_tokens where that is smaller. Every
// fault is reported at once, marked as wrong usage; an unknown preset or key lists those that exist.
func ParseSpec(spec string) (Config, error) {
	rest := strings.TrimPrefix(spec, "sim:")
	var c Config
	var errs []error
	var pairs []string
	if kind, body, ok := strings.Cut(rest, ":"); kind == fixedPreset || kind == queuePreset {
		c = slotsConfig(kind)
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
	slots := c.Preset == fixedPreset || c.Preset == queuePreset
	if slots && !given["service"] {
		errs = append(errs, fmt.Errorf("a %s engine needs service, such as %[1]s:service=300ms", c.Preset))
	}
	if !slots && !given["max_model_len"] {
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
	return fallback, fmt.Errorf("unknown preset %q; there are %s, and fixed:service=…, queue:service=…,dist=…", name, strings.Join(names, ", "))
}

// setKeys applies key=value pairs and returns the names that were given.
func setKeys(c *Config, pairs []string) (map[string]bool, []error) {
	var errs []error
	known := map[string]Key{}
	var names []string
	for _, k := range Keys() {
		if k.applies(c.Preset) {
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
		case given[name] && !k.Fault:
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
	var base Config
	spec, sep := "sim:", ","
	if c.Service > 0 {
		if base = slotsConfig(fixedPreset); c.Preset == queuePreset {
			base = slotsConfig(queuePreset)
		}
		sep = ":"
	} else {
		// An unknown name falls back to the default preset's config.
		base, _ = presetConfig(c.Preset)
	}
	spec += base.Preset
	for _, k := range Keys() {
		if k.Fault || !k.applies(base.Preset) {
			continue
		}
		if v := k.get(&c); v != k.get(&base) {
			spec += sep + k.Name + "=" + v
			sep = ","
		}
	}
	for i := range c.Faults {
		spec += sep + c.Faults[i].Kind + "=" + c.Faults[i].value()
		sep = ","
	}
	return spec
}

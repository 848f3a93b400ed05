package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// look opens page in a window of its own.
func (b *browser) look(page string, width int) (*view, error) {
	abs, err := filepath.Abs(page)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(abs); err != nil {
		return nil, err
	}
	address := (&url.URL{Scheme: "file", Path: abs}).String()
	var target struct{ TargetID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var tab struct{ SessionID string }
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &tab); err != nil {
		return nil, err
	}
	v := &view{}
	loaded := false
	b.on = func(session, method string, params json.RawMessage) {
		if session == tab.SessionID {
			loaded = v.hear(address, method, params) || loaded
		}
	}
	screen := map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}
	scheme := "light"
	if b.dark {
		scheme = "dark"
	}
	media := map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}
	for _, c := range []command{{"Page.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil}, {"Network.enable", nil},
		{"Emulation.setDeviceMetricsOverride", screen}, {"Emulation.setEmulatedMedia", media}, {"Page.navigate", map[string]any{"url": address}}} {
		if err := b.call(tab.SessionID, c.method, c.params, nil); err != nil {
			return nil, err
		}
	}
	for !loaded {
		if err := b.next(); err != nil {
			return nil, err
		}
	}
	if err := b.see(tab.SessionID, v); err != nil {
		return nil, err
	}
	return v, b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil)
}

// see measures the page and takes its picture.
func (b *browser) see(session string, v *view) error {
	var got struct {
		Result struct{ Value string }
	}
	if err := b.call(session, "Runtime.evaluate", map[string]any{"expression": measure, "returnByValue": true}, &got); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(got.Result.Value), v); err != nil {
		return fmt.Errorf("measuring the page: %w", err)
	}
	var shot struct{ Data string }
	if err := b.call(session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot); err != nil {
		return err
	}
	var err error
	v.shot, err = base64.StdEncoding.DecodeString(shot.Data)
	return err
}

// hear takes an event of the page and tells whether the page has loaded.
func (v *view) hear(address, method string, params json.RawMessage) (loaded bool) {
	var p struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct{ Text string }
		Entry            struct{ Level, Text, URL string }
		Request          struct{ URL string }
	}
	_ = json.Unmarshal(params, &p) // other events have other fields
	switch method {
	case "Page.loadEventFired":
		return true
	case "Runtime.exceptionThrown":
		v.said = append(v.said, "script error: "+p.ExceptionDetails.Text)
	case "Runtime.consoleAPICalled":
		v.said = append(v.said, fmt.Sprintf("console %s: %v", p.Type, p.Args))
	case "Log.entryAdded":
		v.said = append(v.said, fmt.Sprintf("log %s: %s %s", p.Entry.Level, p.Entry.Text, p.Entry.URL))
	case "Network.requestWillBeSent":
		if p.Request.URL != address {
			v.said = append(v.said, "request for "+p.Request.URL)
		}
	}
	return false
}

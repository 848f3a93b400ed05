//go:build !linux

package cli

func hideText() {}

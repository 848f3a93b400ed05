//go:build !unix

package anonymize

import "os/exec"

func ownGroup(*exec.Cmd) {}

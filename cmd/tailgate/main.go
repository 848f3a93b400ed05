// Command tailgate turns gateway logs into timed traces, replays them, and judges tail SLOs.
package main

import (
	"os"

	"tailgate/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}

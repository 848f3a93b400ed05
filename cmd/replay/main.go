// Command replay is `tailgate replay` under its own name.
package main

import (
	"os"

	"tailgate/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(append([]string{"replay"}, os.Args[1:]...)))
}

package main

import (
	"fmt"
	"strings"
)

// docHead is the text before the table in a document.
func docHead(args []string) string {
	return fmt.Sprintf(`# Numbers

Times of the library beside those of other libraries, all on one machine, in turns. Only ratios mean something: 0.5 is half the
time of the other side, and 2 is twice its time. [bench/README.md](../bench/README.md) says what each row measures and what is
fair, and [original.md](original.md) compares with the C# library. Here are the rows that have a goal; a program measures these and
others, and writes this file. Run it for your machine:

`+"```sh\ngo run ./bench/compare %s\n```"+`

`, strings.Join(args, " "))
}

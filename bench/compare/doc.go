package main

import (
	"fmt"
	"strings"
)

// docHead is the text before the table in a document.
func docHead(args []string) string {
	return fmt.Sprintf(`# Numbers

Times of the library beside those of other libraries, all on one machine, in turns. With a ratio of 0.5 we need half the time of the other
side. [bench/README.md](../bench/README.md) says what is fair; [original.md](original.md) compares with the C# library. Here are the rows that
users ask about. Without -doc the program prints all, also others that miss their goals:

`+"```sh\ngo run ./bench/compare %s\n```"+`

`, strings.Join(args, " "))
}

// Package statuspage shows what a program is doing: one page, like that of net/http/pprof, for work.
package statuspage

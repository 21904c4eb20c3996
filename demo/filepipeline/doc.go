// Package filepipeline makes thumbnails, a table of metadata and a list of duplicates of all images below a directory.
// It is the main job of the demo and shows how coordinators work together through signals.
//
// # How it fits together
//
//	walk ──► files ──file.saved──┬──► metadata ◄── one writer, SQLite
//	          │                  ├──► thumbnails ──thumbnail.complete──► metadata
//	          └──file.failed──┐  └──► duplicates ──(asks)──► metadata
//	                          └─────► metadata, duplicates
//
// The source coordinator, files, reads each regular file once: it sniffs the type, decodes the header, hashes the bytes
// and keeps a [File] as the state of the operation. Then it raises file.saved, which carries no payload. Three reactions,
// each a coordinator with a limit of its own, subscribe to that signal. Their handlers pin the source operation and
// enqueue its id; their bodies look the operation up, read its state and give up the pin. So a source stays in its
// window exactly as long as somebody has yet to read it.
//
// # Why memory is bounded
//
// Handlers run on the raiser's goroutine and the reactions' queues are short, so a slow reaction makes the source wait
// instead of piling up work. Whatever would grow with the number of files is kept elsewhere: names come from the
// directory in batches, the first path of each hash is in a temporary table, durations go into histograms of fixed size,
// a summary lists a fixed number of failures and the database has them all. What remains are the limits: a few files
// being hashed, and per thumbnail in the making one compressed file and its pixels.
//
// # What becomes of each entry
//
//   - A regular file whose first bytes are those of a PNG, JPEG or GIF is an image, whatever its name. Every image has a
//     row, also when it fails, and so has a file that cannot be read, which may be one.
//   - Any other file is skipped: no row, one signal with the reason. So are symbolic links, followed nowhere because what
//     they point to is either below the directory anyway or none of our business, and pipes, sockets and devices, which
//     are not even opened.
//   - An image whose header does not decode, or declares more than [Limits] allow, fails in the source (file.failed); one
//     whose pixels do not decode, or whose bytes have changed since, fails as a thumbnail (thumbnail.failed). The cause is
//     in the column error, and width and height are what the file declares.
//   - Equal contents share one thumbnail. The one whose path sorts lowest, byte by byte, is the original; duplicate_of of
//     the others names it. That also holds for images that fail, as long as they could be read to the end.
//   - A directory that cannot be listed fails (directory.failed) and the walk goes on.
//
// Columns that are not known or do not apply are NULL. Paths are relative to the input, with forward slashes. A
// thumbnail ignores the orientation that a camera may have noted, and of a GIF it shows the first frame.
package filepipeline

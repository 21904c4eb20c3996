// Package filepipeline makes thumbnails, a table of metadata, and a list of duplicates of all images below a directory.
// It is the main job of the demo and shows how coordinators work together through signals.
//
// # How it fits together
//
//	walk ──► files ──file.saved──┬──► metadata ◄── one writer
//	          │                  ├──► thumbnails ──thumbnail.complete──► metadata
//	          └──file.failed──┐  └──► duplicates ──(asks)──► metadata
//	                          └─────► metadata, duplicates
//
// The source coordinator, files, reads each regular file once: it sniffs the type, decodes the header, hashes the bytes
// and keeps a [File] as the state of the operation. Then it raises file.saved, which carries no payload. Three reactions,
// each a coordinator with its own limit, subscribe to that signal. Their handlers pin the source operation and enqueue
// its id. Their bodies look up the operation, read its state and remove the pin. So a source stays in its window until
// all reactions have read it.
//
// # Why memory is bounded
//
// Handlers run on the raiser's goroutine, and the queues of the reactions are short. So a slow reaction makes the source
// wait, and no work piles up. Data that would grow with the number of files is not kept in memory. Names come from the
// directory in batches. The first path of each hash is in a temporary file. Durations go into histograms of fixed size.
// A summary lists a fixed number of failures, and the table has all of them. In memory are only a few files that are
// being hashed and, for each thumbnail that is being made, one compressed file and its pixels.
//
// # What becomes of each entry
//
//   - A regular file whose first bytes are those of a PNG, JPEG or GIF is an image, whatever its name is. Every image
//     has a row, even if it fails. A file that cannot be read has a row, too, because it may be an image.
//   - Any other file is skipped: no row, one signal with the reason. Symbolic links are skipped, because their target is
//     either below the directory or outside of the job. Pipes, sockets and devices are skipped and not even opened.
//   - An image fails in the source (file.failed) if its header does not decode, or declares more than [Limits] allow. It
//     fails as a thumbnail (thumbnail.failed) if its pixels do not decode, or if its bytes have changed. The field error
//     has the cause, and width and height are what the file declares.
//   - Equal contents share one thumbnail. The file whose path sorts lowest, byte by byte, is the original; the field
//     duplicate_of of the others names it. This holds for images that fail, too, if they could be read to the end.
//   - A directory that cannot be listed fails (directory.failed) and the walk goes on.
//
// Fields that are not known or do not apply are left out. Paths are relative to the input, with forward slashes. A
// thumbnail ignores the orientation in the data of a camera. The thumbnail of a GIF shows the first frame.
package filepipeline

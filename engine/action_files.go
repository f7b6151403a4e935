package engine

import "io/fs"

// The bodies that change the files of a workspace. Each is preceded by a
// checkpoint, so that [Undo] can take it back.
type (
	// MakeDir makes a directory, with those above it. One that is there stays
	// as it is, and the receipt says so.
	MakeDir struct {
		Sandbox SandboxID `json:"sandbox"`
		Name    string    `json:"name"`
	}
	// RenameFile gives a file, link or directory another name.
	RenameFile struct {
		Sandbox SandboxID `json:"sandbox"`
		From    string    `json:"from"`
		To      string    `json:"to"`
		// Overwrite takes the place of a file that is there. A directory's place
		// is never taken.
		Overwrite bool `json:"overwrite,omitempty"`
	}
	// RemoveFile deletes a file, a link (not what it points to) or an empty
	// directory, and with Recursive a directory and all that is in it.
	RemoveFile struct {
		Sandbox   SandboxID `json:"sandbox"`
		Name      string    `json:"name"`
		Recursive bool      `json:"recursive,omitempty"`
	}
	// PlaceFile puts what [Files.Upload] brought at its place, beside and
	// renamed: a file of any size, or a tree.
	PlaceFile struct {
		Sandbox SandboxID `json:"sandbox"`
		Name    string    `json:"name"`
		Upload  UploadID  `json:"upload"`
		// Replaces is as in [WriteFile]; with Overwrite whatever is there is
		// replaced.
		Replaces  Version `json:"replaces,omitempty"`
		Overwrite bool    `json:"overwrite,omitempty"`
		// Mode is the file's permissions; 0: as it had, else 0644.
		Mode fs.FileMode `json:"mode,omitempty"`
		// Tree: the upload is a tar, unpacked beneath the directory Name, over
		// what is there.
		Tree bool `json:"tree,omitempty"`
	}
	// SaveCheckpoint keeps the workspace as it is.
	SaveCheckpoint struct {
		Sandbox SandboxID `json:"sandbox"`
		Note    string    `json:"note,omitempty"`
	}
	// RestoreCheckpoint puts files back as they were: those that differ, or
	// Paths alone.
	RestoreCheckpoint struct {
		Sandbox SandboxID `json:"sandbox"`
		// Checkpoint "" is the last good one.
		Checkpoint CheckpointID `json:"checkpoint,omitempty"`
		Paths      []string     `json:"paths,omitempty"`
	}
	// RollBack takes back what a heal run changed, its commit's content
	// included (the commit itself stays in the repository's history). Files that
	// moved on since are kept, and the receipt names them.
	RollBack struct {
		Sandbox SandboxID `json:"sandbox"`
		Run     RunID     `json:"run,omitempty"` // "": the last one that changed files
	}
	// Undo takes back the last change of files that an operator made by an
	// action. It can itself be undone. A file that moved on since refuses it.
	Undo struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// SaveArchive writes the workspace's archive, unless it is unchanged.
	SaveArchive struct {
		Sandbox SandboxID `json:"sandbox"`
	}
	// RestoreArchive puts the workspace of a stopped sandbox back as it was
	// archived; what it was before is kept aside until that has worked.
	RestoreArchive struct {
		Sandbox SandboxID    `json:"sandbox"`
		Where   ArchivePlace `json:"where,omitempty"` // "": the local one, else the remote
	}
	// RemoveArchive deletes a sandbox's archive.
	RemoveArchive struct {
		Sandbox SandboxID    `json:"sandbox"`
		Where   ArchivePlace `json:"where,omitempty"` // "": both
	}
)

var (
	makeDir = row("file.mkdir", "make a directory in", Operator, Harmless, "PUT /v1/sandboxes/{id}/dir",
		func(a *MakeDir, id string) { a.Sandbox = SandboxID(id) })
	renameFile = row("file.rename", "rename a file in", Operator, Repeat, "POST /v1/sandboxes/{id}/rename",
		func(a *RenameFile, id string) { a.Sandbox = SandboxID(id) })
	removeFile = row("file.remove", "delete a file in", Operator, Confirm, "DELETE /v1/sandboxes/{id}/file",
		func(a *RemoveFile, id string) { a.Sandbox = SandboxID(id) })
	placeFile = row("file.place", "put files into", Operator, Harmless, "POST /v1/sandboxes/{id}/place",
		func(a *PlaceFile, id string) { a.Sandbox = SandboxID(id) })
	saveCheckpoint = row("checkpoint.save", "save a checkpoint of", Operator, Harmless, "POST /v1/sandboxes/{id}/checkpoints",
		func(a *SaveCheckpoint, id string) { a.Sandbox = SandboxID(id) })
	restoreCheckpoint = row("checkpoint.restore", "restore a checkpoint of", Operator, Confirm, "POST /v1/sandboxes/{id}/restore",
		func(a *RestoreCheckpoint, id string) { a.Sandbox = SandboxID(id) })
	rollBack = row("heal.rollback", "roll back the heal of", Operator, Confirm, "POST /v1/sandboxes/{id}/rollback",
		func(a *RollBack, id string) { a.Sandbox = SandboxID(id) })
	undo = row("file.undo", "undo the last change of files in", Operator, Confirm, "POST /v1/sandboxes/{id}/undo",
		func(a *Undo, id string) { a.Sandbox = SandboxID(id) })
	saveArchive = row("archive.save", "archive", Operator, Harmless, "POST /v1/sandboxes/{id}/archive",
		func(a *SaveArchive, id string) { a.Sandbox = SandboxID(id) })
	restoreArchive = row("archive.restore", "restore the archive of", Operator, TypeToName, "POST /v1/sandboxes/{id}/archive/restore",
		func(a *RestoreArchive, id string) { a.Sandbox = SandboxID(id) })
	removeArchive = row("archive.remove", "delete the archive of", Operator, TypeToName, "DELETE /v1/sandboxes/{id}/archive",
		func(a *RemoveArchive, id string) { a.Sandbox = SandboxID(id) })
)

// fileActions are this file's rows of [ActionTable].
var fileActions = []*ActionEntry{
	makeDir, renameFile, removeFile, placeFile, saveCheckpoint, restoreCheckpoint, rollBack, undo,
	saveArchive, restoreArchive, removeArchive,
}

func (MakeDir) entry() *ActionEntry           { return makeDir }
func (RenameFile) entry() *ActionEntry        { return renameFile }
func (RemoveFile) entry() *ActionEntry        { return removeFile }
func (PlaceFile) entry() *ActionEntry         { return placeFile }
func (SaveCheckpoint) entry() *ActionEntry    { return saveCheckpoint }
func (RestoreCheckpoint) entry() *ActionEntry { return restoreCheckpoint }
func (RollBack) entry() *ActionEntry          { return rollBack }
func (Undo) entry() *ActionEntry              { return undo }
func (SaveArchive) entry() *ActionEntry       { return saveArchive }
func (RestoreArchive) entry() *ActionEntry    { return restoreArchive }
func (RemoveArchive) entry() *ActionEntry     { return removeArchive }

func (a MakeDir) Subject() string           { return string(a.Sandbox) }
func (a RenameFile) Subject() string        { return string(a.Sandbox) }
func (a RemoveFile) Subject() string        { return string(a.Sandbox) }
func (a PlaceFile) Subject() string         { return string(a.Sandbox) }
func (a SaveCheckpoint) Subject() string    { return string(a.Sandbox) }
func (a RestoreCheckpoint) Subject() string { return string(a.Sandbox) }
func (a RollBack) Subject() string          { return string(a.Sandbox) }
func (a Undo) Subject() string              { return string(a.Sandbox) }
func (a SaveArchive) Subject() string       { return string(a.Sandbox) }
func (a RestoreArchive) Subject() string    { return string(a.Sandbox) }
func (a RemoveArchive) Subject() string     { return string(a.Sandbox) }

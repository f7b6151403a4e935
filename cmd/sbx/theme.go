package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"sbx/engine"
	"sbx/themes"
)

func newThemeCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "theme",
		Short:   "List, show and check the dashboard's themes",
		Example: "  sbx theme ls\n  sbx theme show nord\n  sbx theme check nord",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	ls := &cobra.Command{
		Use:     "ls",
		Short:   "List the built-in themes and your own",
		Example: "  sbx theme ls\n  sbx tui --theme nord",
		RunE:    func(*cobra.Command, []string) error { return listThemes(c) },
	}
	addJSON(c, ls)
	show := &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a theme as TOML, complete: a start for one of your own",
		Example: "  sbx theme show nord",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return showTheme(c, args[0]) },
	}
	check := &cobra.Command{
		Use:     "check NAME|FILE",
		Short:   "Say what of a theme can't be read or told apart; exit 1 if there is something",
		Example: "  sbx theme check nord",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return checkTheme(c, args[0]) },
	}
	for _, sub := range []*cobra.Command{ls, show, check} {
		checkArgs(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func themeDir(c *cli) string { return filepath.Join(configDir(c), "themes") }

type themeJSON struct {
	Name       string            `json:"name"`
	Title      string            `json:"title"`
	Appearance themes.Appearance `json:"appearance"`
	Own        bool              `json:"own,omitempty"`
	Error      string            `json:"error,omitempty"`
}

func listThemes(c *cli) error {
	dir := themeDir(c)
	rows := [][]string{{"THEME", "FOR", "TITLE"}}
	var list []themeJSON
	for _, name := range themes.Names(dir) {
		_, missing := os.Stat(filepath.Join(dir, name+".toml"))
		row := themeJSON{Name: name, Own: missing == nil}
		t, err := themes.Load(name, dir)
		if err != nil {
			row.Error = err.Error()
		}
		row.Title, row.Appearance = t.Title, t.Appearance
		list = append(list, row)
		title := row.Title
		if row.Own {
			title += " (yours)"
		}
		if err != nil {
			title = row.Error
		}
		rows = append(rows, []string{name, string(row.Appearance), title})
	}
	if c.json {
		return c.printJSON(list)
	}
	return c.printTable(rows)
}

// loadTheme finds a theme by name, or reads the file of that path.
func loadTheme(c *cli, ref string) (themes.Theme, error) {
	name, dir := ref, themeDir(c)
	if strings.ContainsRune(ref, filepath.Separator) || strings.HasSuffix(ref, ".toml") {
		name, dir = strings.TrimSuffix(filepath.Base(ref), ".toml"), filepath.Dir(ref)
		if _, err := os.Stat(filepath.Join(dir, name+".toml")); err != nil {
			return themes.Theme{}, engine.Errorf(engine.NotFound, "no theme file %s", ref).WithHint("themes end in .toml; see them with: sbx theme ls")
		}
	}
	t, err := themes.Load(name, dir)
	if err != nil {
		return t, engine.Errorf(engine.Invalid, "%w", err).WithHint("see the themes with: sbx theme ls")
	}
	return t, nil
}

func showTheme(c *cli, ref string) error {
	t, err := loadTheme(c, ref)
	if err != nil {
		return err
	}
	text := themes.Format(t)
	if !c.terminal {
		_, err := fmt.Fprint(c.out, text)
		return err
	}
	for line := range strings.Lines(text) { // what is shown is also drawn
		role, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
		if look, ok := t.Looks[themes.Role(role)]; ok {
			line = swatch(look) + " " + line
		}
		if _, err := fmt.Fprint(c.out, line); err != nil {
			return err
		}
	}
	return nil
}

// swatch draws a look in true colour; roles without a colour of their own draw
// nothing.
func swatch(l themes.Look) string {
	seq := ""
	if c, ok := l.FG.RGB(); ok {
		seq += fmt.Sprintf("\x1b[38;2;%d;%d;%dm", int(c.R*255), int(c.G*255), int(c.B*255))
	}
	if c, ok := l.BG.RGB(); ok {
		seq += fmt.Sprintf("\x1b[48;2;%d;%d;%dm", int(c.R*255), int(c.G*255), int(c.B*255))
	}
	return seq + "aA" + ansi.ResetStyle
}

func checkTheme(c *cli, ref string) error {
	t, err := loadTheme(c, ref)
	if err != nil {
		return err
	}
	bad := themes.Check(t)
	for _, err := range bad {
		fmt.Fprintln(c.out, cleanLine(err.Error()))
	}
	if len(bad) > 0 {
		return engine.Errorf(engine.Internal, "theme %s: %d things can't be read or told apart", t.Name, len(bad)).WithHint("mend the roles named above")
	}
	_, err = fmt.Fprintf(c.out, "%s: every role can be read and told apart\n", cleanLine(t.Name))
	return err
}

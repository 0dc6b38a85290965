#pragma once
/* ncurses with wide characters. Most of it is macros and the variable stdscr, which Swift does not import. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

/* POSIX declares it only with _XOPEN_SOURCE. */
extern int wcwidth(wchar_t character);

/* Of <term.h>, which defines macros with the names of common variables. */
extern char *tigetstr(const char *capability);

/* Attributes of cncurses_add. */
enum { CNCURSES_BOLD = 1, CNCURSES_DIM = 2, CNCURSES_REVERSE = 4, CNCURSES_UNDERLINE = 8 };

/* What cncurses_key returns beside ERR. */
enum { CNCURSES_CHARACTER = 0, CNCURSES_FUNCTION = 1 };

/* Sets the character set of the environment (LC_CTYPE), by which cncurses_width counts. */
static inline void cncurses_locale(const char *name) { setlocale(LC_CTYPE, name); }

/* The columns of a character; -1 if the terminal cannot show it. */
static inline int cncurses_width(uint32_t character) { return wcwidth((wchar_t)character); }

/* Whether the terminal has a capability of terminfo(5). */
static inline int cncurses_has(const char *capability) {
    char *text = tigetstr(capability);
    return text != NULL && text != (char *)-1;
}

/* Takes over the terminal of standard input and output; -1 if terminfo does not know it, or it cannot move its cursor.
   colors: whether the colors 1 to 7 of cncurses_add are shown. */
static inline int cncurses_start(int colors) {
    if (newterm(NULL, stdout, stdin) == NULL) return -1;
    if (!cncurses_has("cup") || !cncurses_has("clear")) {
        endwin();
        return -1;
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    /* Over ssh the bytes of an arrow key can arrive in two packets. */
    set_escdelay(100);
    curs_set(0);
    if (colors && has_colors()) {
        start_color();
        use_default_colors();
        for (short color = 1; color < 8; color++) init_pair(color, color, -1);
    }
    return 0;
}

static inline void cncurses_end(void) { endwin(); }

static inline void cncurses_size(int *rows, int *columns) { getmaxyx(stdscr, *rows, *columns); }

/* Begins a new picture. Nothing is sent to the terminal before cncurses_show. */
static inline void cncurses_begin(void) { werase(stdscr); }

/* Adds text at a position. color: 0 for that of the terminal. */
static inline void cncurses_add(int row, int column, const uint32_t *text, int count, unsigned attributes, int color) {
    attr_t attribute = (attributes & CNCURSES_BOLD ? A_BOLD : 0) | (attributes & CNCURSES_DIM ? A_DIM : 0) |
                       (attributes & CNCURSES_REVERSE ? A_REVERSE : 0) | (attributes & CNCURSES_UNDERLINE ? A_UNDERLINE : 0);
    wattr_set(stdscr, attribute, (short)color, NULL);
    mvwaddnwstr(stdscr, row, column, (const wchar_t *)text, count);
}

/* Sends what differs from the last picture to the terminal, or all of it. */
static inline void cncurses_show(int everything) {
    if (everything) redrawwin(stdscr);
    wattr_set(stdscr, 0, 0, NULL);
    wrefresh(stdscr);
}

/* The next key that was typed: CNCURSES_CHARACTER, CNCURSES_FUNCTION with a KEY_ number, or ERR if there is none. */
static inline int cncurses_key(uint32_t *key) {
    wint_t number = 0;
    int result = wget_wch(stdscr, &number);
    *key = number;
    return result == OK ? CNCURSES_CHARACTER : result == KEY_CODE_YES ? CNCURSES_FUNCTION : ERR;
}

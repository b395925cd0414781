//! Layout of the screen of `top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};

use super::app::{App, MemberRow};
use super::number::{short, time};
use crate::view::JobView;

const HEADER_LINES: u16 = 3;
/// Height of the job table in lines, including its two title lines.
const JOBS_LINES: u16 = 7;
/// Height of the drop table in lines, including its title.
const DROPS_LINES: u16 = 5;
/// Number of columns of drop reasons.
const DROP_COLUMNS: usize = 2;

/// Columns of the member table, with their widths. A narrow screen shows only the first [`UNNAMED_COLUMNS`].
const MEMBER_COLUMNS: [(&str, u16); 10] = [
    ("id", 3),
    ("address", 21),
    ("kind", 6),
    ("round", 9),
    ("behind", 6),
    ("segments/s", 10),
    ("silent", 9),
    ("missing", 9),
    ("rank", 5),
    ("host", 24),
];
/// Number of columns without the rank and the host name.
const UNNAMED_COLUMNS: usize = 8;
/// Minimum width of a screen that shows the rank and the host name.
const NAMED_WIDTH: u16 = 100;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let [header, jobs, members, drops, footer] = Layout::vertical([
        Constraint::Length(HEADER_LINES),
        Constraint::Length(JOBS_LINES),
        Constraint::Min(4),
        Constraint::Length(DROPS_LINES),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(summary(app), header);
    draw_jobs(frame, app, jobs);
    draw_members(frame, app, members);
    draw_drops(frame, app, drops);
    frame.render_widget(keys(app), footer);
}

fn summary(app: &App) -> Paragraph<'_> {
    let (view, interval) = (&app.now, app.interval());
    let members: usize = view.jobs.iter().map(|job| job.members.len()).sum();
    let bits = |counter| short(8.0 * interval.of(|view| view.of_ports(counter)));
    let datagrams = |counter| short(interval.of(|view| view.of_ports(counter)));
    let traffic = |counter| short(interval.of_counter(|view| &view.traffic, counter));
    let buffers = view.ports.iter().map(|port| port.recv_buffer_bytes).min().unwrap_or(0);
    let ports: Vec<_> = view.ports.iter().map(|port| format!("{} ({})", port.name, port.mode)).collect();
    let jobs = view.jobs.len();
    let running = format!("iswitchd up {}, jobs {jobs}, members {members}", time(view.uptime_ms));
    Paragraph::new(vec![
        Line::from(running).bold(),
        Line::from(format!(
            "in {}/s {} bit/s; out {}/s {} bit/s; results {}/s, resent {}/s",
            datagrams("received_datagrams"),
            bits("received_bytes"),
            datagrams("sent_datagrams"),
            bits("sent_bytes"),
            traffic("results"),
            traffic("results_repeated"),
        )),
        Line::from(format!(
            "receive buffer {}B, drops {}; ports {}",
            short(buffers as f64),
            view.of_ports("receive_buffer_drops"),
            ports.join(", "),
        )),
    ])
}

fn titled(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).title(title)
}

fn heads(names: impl IntoIterator<Item = &'static str>) -> Row<'static> {
    Row::new(names).style(Style::new().add_modifier(Modifier::BOLD))
}

/// Returns the range of list items that fits into `lines` lines and includes the selected item.
fn window(len: usize, selected: usize, lines: usize) -> std::ops::Range<usize> {
    let first = (selected + 1).saturating_sub(lines).min(len);
    first..len.min(first + lines)
}

fn draw_jobs(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let (jobs, selected) = (&app.now.jobs, app.selected());
    let shown = window(jobs.len(), selected, usize::from(area.height.saturating_sub(2)));
    let title =
        format!(" jobs {} to {} of {} ", shown.start + usize::from(!shown.is_empty()), shown.end, jobs.len());
    let rows = jobs[shown.clone()].iter().zip(shown).map(|(job, at)| {
        let style = if at == selected { Style::new().reversed() } else { Style::new() };
        job_row(app, job).style(style)
    });
    let widths = [10, 5, 6, 7, 3, 8, 8, 5, 19].map(Constraint::Length);
    let table = Table::new(rows, widths)
        .header(heads(["job", "mode", "floats", "members", "H", "round", "rounds/s", "group", "state"]))
        .block(titled(title));
    frame.render_widget(table, area);
}

fn job_row(app: &App, job: &JobView) -> Row<'static> {
    let expected = if job.workers == 0 { String::new() } else { format!("/{}", job.workers) };
    Row::new([
        job.job.to_string(),
        if job.mode == "synchronous" { "sync" } else { "async" }.to_owned(),
        short(job.gradient_len.into()),
        format!("{}{expected}", job.members.len()),
        job.threshold.to_string(),
        job.round.map_or("-".to_owned(), |round| round.to_string()),
        short(app.interval().rounds(job)),
        group(job),
        state(job),
    ])
}

/// Returns the number of members that receive results through the group of the job, or `-` if no member does.
fn group(job: &JobView) -> String {
    match job.members.iter().filter(|member| member.hears_group).count() {
        0 => "-".to_owned(),
        count => count.to_string(),
    }
}

/// Returns the most important condition that keeps a job from progressing, or `running` if there is none.
fn state(job: &JobView) -> String {
    let refused = || job.parent_refusal.as_ref().map(|reason| format!("parent refuses: {reason}"));
    let waiting = || {
        let waiting = job.waiting.as_ref().filter(|waiting| waiting.waited_ms >= 100)?;
        let ids: Vec<_> = waiting.members.iter().map(|awaited| awaited.member.to_string()).collect();
        Some(format!("waiting {} for {}", time(waiting.waited_ms), ids.join(" ")))
    };
    let fixed = match job {
        _ if job.parent_lost => Some("parent lost"),
        _ if job.halted => Some("halted"),
        _ if !job.formed => Some("forming"),
        _ => None,
    };
    let running = || match job.parts {
        1 if job.on_card => "running on the card".to_owned(),
        1 => "running".to_owned(),
        parts => format!("running in {parts} parts"),
    };
    fixed.map(str::to_owned).or_else(refused).or_else(waiting).unwrap_or_else(running)
}

fn draw_members(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.members();
    let room = usize::from(area.height.saturating_sub(2));
    let hidden = rows.len().saturating_sub(room);
    let more = if hidden > 0 { format!("; {hidden} not shown") } else { String::new() };
    let job = app.job().map_or("-".to_owned(), |job| match &job.name {
        Some(name) => format!("{} ({name})", job.job),
        None => job.job.to_string(),
    });
    let title = format!(" members of job {job}, by {}{more} ", app.sort.name());
    let segments = app.job().and_then(|job| Some(job.waiting.as_ref()?.segments));
    let has_names = area.width >= NAMED_WIDTH;
    let rows = rows.iter().take(room).map(|row| member_row(row, segments, has_names));
    let columns = if has_names { &MEMBER_COLUMNS[..] } else { &MEMBER_COLUMNS[..UNNAMED_COLUMNS] };
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let heads = heads(columns.iter().map(|(name, _)| *name));
    frame.render_widget(Table::new(rows, widths).header(heads).block(titled(title)), area);
}

fn member_row(row: &MemberRow, segments: Option<u32>, has_names: bool) -> Row<'static> {
    let missing = match segments {
        Some(segments) if row.missing > 0 => format!("{}/{segments}", row.missing),
        _ => "-".to_owned(),
    };
    let cells = [
        row.id.to_string(),
        row.address.clone(),
        row.kind.clone(),
        row.last_round.map_or("-".to_owned(), |round| round.to_string()),
        row.behind.to_string(),
        short(row.rate),
        time(row.silent_ms),
        missing,
        row.rank.map_or("-".to_owned(), |rank| rank.to_string()),
        row.host.clone().unwrap_or_else(|| "-".to_owned()),
    ];
    let cells = cells.into_iter().take(if has_names { MEMBER_COLUMNS.len() } else { UNNAMED_COLUMNS });
    let style = if row.missing > 0 { Style::new().yellow() } else { Style::new() };
    Row::new(cells.map(Cell::from)).style(style)
}

fn draw_drops(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let drops = app.drops();
    let total: u64 = drops.iter().map(|(_, _, count)| count).sum();
    let room = usize::from(area.height.saturating_sub(1)) * DROP_COLUMNS;
    let lines = drops[..drops.len().min(room)].chunks(DROP_COLUMNS).map(|pair| {
        let cells =
            pair.iter().map(|(reason, rate, count)| format!("{reason:19} {:>5}/s {count:>9}", short(*rate)));
        Line::from(cells.collect::<Vec<_>>().join("  "))
    });
    let title = format!(" drops by reason, {total} in total ");
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(titled(title)), area);
}

fn keys(app: &App) -> Line<'_> {
    match &app.error {
        Some(error) => Line::from(error.as_str()).red(),
        None => Line::from("q quit   j/k select job   s change sort order").dim(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::*;

    /// Returns the state after two snapshots of a daemon with two jobs, one of which is waiting for a member.
    fn app() -> App {
        let mut app = App::default();
        for fixture in
            [include_str!("../../fixtures/snapshot-1.json"), include_str!("../../fixtures/snapshot-2.json")]
        {
            app.update(serde_json::from_str(fixture).unwrap());
        }
        app
    }

    fn screen(app: &App) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(80);
        rows.map(|row| {
            row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned() + "\n"
        })
        .collect()
    }

    fn check(app: &App, expected: &str) {
        let screen = screen(app);
        assert!(screen == expected, "unexpected screen:\n{screen}\nexpected:\n{expected}");
    }

    #[test]
    fn an_80_by_24_screen_shows_late_members() {
        check(&app(), include_str!("../../fixtures/top-80x24.txt"));
    }

    #[test]
    fn keys_select_the_job_and_the_sort_order() {
        let mut app = app();
        for key in ['j', 'j', 's', 's'] {
            assert!(!app.press(KeyEvent::from(KeyCode::Char(key))));
        }
        app.fail(&anyhow::anyhow!("cannot query the daemon at /run/iswitchd.sock: Connection refused"));
        check(&app, include_str!("../../fixtures/top-80x24-second-job.txt"));
        assert!(app.press(KeyEvent::from(KeyCode::Char('q'))));
    }

    #[test]
    fn empty_data_and_tiny_terminals_cause_no_panic() {
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            for app in [App::default(), app()] {
                terminal.draw(|frame| draw(frame, &app)).unwrap();
            }
        }
    }
}

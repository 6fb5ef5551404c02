//! Reads a tree from text; the grammar is in the parent module.

use super::names::NAMES;
use super::{CopyLayout, Parameters, Rotation, Tree, LEVELS};
use raidlab_types::SpecError;

/// Chunk where the text names none; md's default is 512 KiB, 64 KiB keeps small examples readable.
const DEFAULT_CHUNK_BYTES: u64 = 64 * 1024;

/// Members of one level, and of a whole tree; levels within levels: beyond what makes sense, and short of what hurts.
const MOST_CHILDREN: usize = 4096;
const MOST_MEMBERS: usize = 1 << 16;
const DEEPEST: u32 = 16;

/// How much of a text stands in an error, and how long what is said of it may be.
const LONGEST_SHOWN: usize = 160;
const LONGEST_MESSAGE: usize = 1000;

/// A text as it may stand in an error: one line, and cut where it is long.
fn shown(text: &str, longest: usize) -> String {
    let mut plain: String = text.chars().take(longest).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(longest).is_some() {
        plain.push_str("...");
    }
    plain
}

struct TreeParser<'a> {
    text: &'a str,
    at: usize,
    /// Levels open around the place it is at.
    depth: u32,
}

/// What stands between the brackets of a node.
struct Args<'a> {
    /// Keys given, each once.
    given: Vec<&'a str>,
    parameters: Parameters,
}

impl Default for Args<'_> {
    fn default() -> Self {
        let parameters = Parameters {
            children: Vec::new(),
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            rotation: Rotation::LeftSymmetric,
            layout: CopyLayout::NEAR2,
            parities: 1,
            width: None,
            spares: 0,
            groups: None,
            data_offset_bytes: 0,
        };
        Args { given: Vec::new(), parameters }
    }
}

impl Tree {
    /// Reads a tree from text such as `raid5(5, chunk=64KiB)` and validates its shape.
    pub fn parse(text: &str) -> Result<Tree, SpecError> {
        let mut parser = TreeParser { text, at: 0, depth: 0 };
        let tree = parser.tree()?;
        parser.blanks();
        if parser.at != text.len() {
            return Err(parser.error(format!("'{}' follows a complete tree", &text[parser.at..])));
        }
        tree.validate().map_err(|e| SpecError { message: e.message, ..parser.error(String::new()) })?;
        Ok(tree)
    }
}

/// Reads a size such as `64KiB`, `4K` (KiB), `512`, `1MB`; units are KiB/MiB/GiB/TiB, KB/MB/GB/TB and B.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let factor: u64 = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

impl<'a> TreeParser<'a> {
    fn error(&self, message: String) -> SpecError {
        SpecError::new(format!("'{}'", shown(self.text, LONGEST_SHOWN)), shown(&message, LONGEST_MESSAGE))
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn word(&mut self) -> &'a str {
        self.blanks();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn tree(&mut self) -> Result<Tree, SpecError> {
        let name = self.word();
        if name.is_empty() {
            return Err(self.error(format!(
                "a level is expected at '{}'; accepted: {}",
                &self.text[self.at..],
                accepted_names()
            )));
        }
        let mut args = Args::default();
        if self.depth == DEEPEST {
            return Err(self.error(format!("levels within levels; accepted: at most {DEEPEST}")));
        }
        self.depth += 1;
        if self.eat('(') {
            while !self.eat(')') {
                self.arg(&mut args)?;
                if !self.eat(',') && !self.text[self.at..].trim_start().starts_with(')') {
                    return Err(self.error(format!("',' or ')' is expected at '{}'", &self.text[self.at..])));
                }
            }
        } else if self.eat(':') {
            self.short_form(&mut args)?;
        }
        self.depth -= 1;
        self.build(name, args)
    }

    fn short_form(&mut self, args: &mut Args<'a>) -> Result<(), SpecError> {
        let count = self.word();
        args.parameters.children = self.count(count)?;
        if self.eat(':') {
            let size = self.word();
            args.given.push("chunk");
            args.parameters.chunk_bytes = self.size("chunk", size)?;
        }
        Ok(())
    }

    fn count(&self, word: &str) -> Result<Vec<Tree>, SpecError> {
        match word.parse::<usize>() {
            Ok(n) if (1..=MOST_CHILDREN).contains(&n) => Ok(vec![Tree::member(); n]),
            _ if word.is_empty() => Err(self.error(format!(
                "a number of members is expected at '{}'; accepted: 1 to {MOST_CHILDREN}",
                &self.text[self.at..]
            ))),
            _ => Err(self.error(format!("{word} members; accepted: 1 to {MOST_CHILDREN}"))),
        }
    }

    fn size(&self, key: &str, word: &str) -> Result<u64, SpecError> {
        parse_size(word)
            .ok_or_else(|| self.error(format!("{key} = '{word}'; accepted: a size such as 64KiB, 1MiB or 512")))
    }

    fn arg(&mut self, args: &mut Args<'a>) -> Result<(), SpecError> {
        self.blanks();
        let start = self.at;
        let word = self.word();
        if self.eat('=') {
            let value = self.word();
            return self.keyword(args, word, value);
        }
        if args.given.contains(&"members") {
            return Err(self.error("members is given twice".into()));
        }
        if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
            if self.eat('*') {
                let n = self.count(word)?.len();
                let child = self.tree()?;
                self.check_members(args, n, &child)?;
                args.parameters.children.extend(std::iter::repeat_n(child, n));
            } else {
                args.parameters.children.extend(self.count(word)?);
            }
            return Ok(());
        }
        self.at = start;
        let child = self.tree()?;
        self.check_members(args, 1, &child)?;
        args.parameters.children.push(child);
        Ok(())
    }

    /// Refuses `n` more children like this one where the level would have too many members.
    fn check_members(&self, args: &Args<'a>, n: usize, child: &Tree) -> Result<(), SpecError> {
        let members = args.parameters.children.iter().map(Tree::leaves).sum::<usize>() + n * child.leaves();
        if members <= MOST_MEMBERS {
            return Ok(());
        }
        Err(self.error(format!("{members} members in all; accepted: at most {MOST_MEMBERS}")))
    }

    /// Takes note of a key, which must be its first.
    fn once(&self, args: &mut Args<'a>, key: &'a str) -> Result<(), SpecError> {
        let twice = args.given.contains(&key) || (key == "members" && !args.parameters.children.is_empty());
        args.given.push(key);
        match twice {
            true => Err(self.error(format!("{key} is given twice"))),
            false => Ok(()),
        }
    }

    fn keyword(&self, args: &mut Args<'a>, key: &'a str, value: &str) -> Result<(), SpecError> {
        self.once(args, key)?;
        let number =
            || value.parse::<usize>().map_err(|_| self.error(format!("{key} = '{value}'; accepted: a whole number")));
        match key {
            "chunk" => args.parameters.chunk_bytes = self.size(key, value)?,
            "data_offset" => args.parameters.data_offset_bytes = self.size(key, value)?,
            "members" => args.parameters.children = self.count(value)?,
            "groups" => args.parameters.groups = Some(number()?),
            // More than 2 are refused where the tree is checked.
            "parities" => args.parameters.parities = number()?.try_into().unwrap_or(u32::MAX),
            "width" => args.parameters.width = Some(number()?.try_into().unwrap_or(u32::MAX)),
            "spares" => args.parameters.spares = number()?.try_into().unwrap_or(u32::MAX),
            "rotation" => {
                let found = Rotation::ALL.into_iter().find(|r| r.name() == value);
                let accepted = Rotation::ALL.map(Rotation::name).join(", ");
                args.parameters.rotation =
                    found.ok_or_else(|| self.error(format!("rotation = '{value}'; accepted: {accepted}")))?;
            }
            "layout" => {
                let found = CopyLayout::try_from(value.to_owned());
                args.parameters.layout = found.map_err(|message| self.error(format!("layout = {message}")))?;
            }
            _ => {
                return Err(self.error(format!(
                "unknown key '{key}'; accepted: chunk, rotation, layout, parities, width, spares, groups, members, data_offset"
            )))
            }
        }
        Ok(())
    }

    fn build(&self, name: &str, args: Args<'a>) -> Result<Tree, SpecError> {
        let children = &args.parameters.children;
        let Some(word) = LEVELS.iter().chain(&NAMES).find(|word| word.name == name) else {
            return Err(self.error(format!("unknown level '{name}'; accepted: {}", accepted_names())));
        };
        if name == "member" && !children.is_empty() {
            return Err(self.error("'member' is one device and has no members; accepted: member, or a number".into()));
        }
        if let Some(key) = args.given.iter().find(|key| !word.keys.contains(key)) {
            return Err(self.error(format!("'{name}' takes no key '{key}'; accepted: {}", word.keys.join(", "))));
        }
        if NAMES.iter().any(|common| common.name == name) && children.iter().any(|c| c.level() != "member") {
            return Err(self
                .error(format!("'{name}' takes a number of members; use stripe, mirror or parity over other levels")));
        }
        (word.build)(args.parameters).map_err(|message| self.error(message))
    }
}

fn accepted_names() -> String {
    LEVELS.iter().chain(&NAMES).map(|word| word.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_however_long_the_text_is() {
        let digits = "9".repeat(5000);
        for text in
            [format!("raid5({digits})"), "\n".repeat(50), format!("raid5(5, {digits}=1)"), format!("raid6:3,{digits}")]
        {
            let error = Tree::parse(&text).unwrap_err();
            assert!(error.key.len() < 200 && error.message.len() < 1100, "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn named_and_nested_forms_agree() {
        assert_eq!(Tree::parse("raid10(8)").unwrap(), Tree::parse("stripe(4*mirror(2), chunk=64KiB)").unwrap());
        assert_eq!(Tree::parse("raid5:5:4K").unwrap(), Tree::parity(1, 5, 4096, Rotation::LeftSymmetric));
        assert_eq!(Tree::parse("independent( 2*raid1:2 )").unwrap().leaves(), 4);
        assert_eq!(Tree::parse("raid50(6, groups=2)").unwrap().tolerance(), 1);
        assert_eq!(Tree::parse("raid60:8").unwrap().tolerance(), 2);
        assert_eq!(Tree::parse("raid10:8").unwrap().tolerance(), 1);
        assert_eq!(Tree::parse("raid10(6, layout=n3)").unwrap(), Tree::parse("stripe(2*mirror(3))").unwrap());
        assert_eq!(Tree::parse("raid10(5)").unwrap(), Tree::parse("copies(5, layout=near2)").unwrap());
        assert_eq!(Tree::parse("raid10(4, layout=f2)").unwrap(), Tree::parse("copies(4, layout=far2)").unwrap());
        assert_eq!(Tree::parse("raid10(5, layout=offset3)").unwrap().tolerance(), 2);
        // Of neighbours both may be lost only where they hold no chunk between them.
        assert_eq!(Tree::parse("copies(mirror(2), mirror(2), member, mirror(2))").unwrap().tolerance(), 2);
        assert_eq!(Tree::parse("copies(member, mirror(2), member, mirror(2), layout=far2)").unwrap().tolerance(), 2);
    }

    #[test]
    fn mistakes_say_what_would_be_accepted() {
        for (text, expected) in [
            ("raid6:3", "needs at least 4"),
            ("raid9:3", "unknown level 'raid9'"),
            ("raid5(5, chunk=big)", "accepted: a size"),
            ("raid5(5, rotation=up)", "left_symmetric"),
            ("raid5(5", "is expected"),
            ("raid5(5) x", "follows a complete tree"),
            ("stripe(independent(2))", "only at the root"),
            ("mirror(1)", "needs at least 2"),
            ("raid01:5", "even number"),
            ("raid10:1", "RAID 10 (near2) has 1 member(s); it needs at least 2"),
            ("raid10(3, layout=far4)", "RAID 10 (far4) has 3 member(s); it needs at least 4"),
            ("raid10(4, layout=far1)", "fewer than two copies"),
            ("raid10(4, layout=2)", "such as far2"),
            ("raid10(4, layout=left_symmetric)", "such as far2"),
            ("raid5(4, layout=far2)", "takes no key 'layout'"),
            ("raid5(5, chunk=0)", "chunk = 0"),
            ("", "a level is expected"),
            ("raid0:0", "accepted: 1 to 4096"),
            ("raid0:99999999", "accepted: 1 to 4096"),
            ("raid5:-3", "a number of members is expected at '-3'"),
            ("raid5:", "a number of members is expected at ''"),
            ("stripe(4096*stripe(4096*stripe(4096)))", "16777216 members in all; accepted: at most 65536"),
            ("member(3)", "is one device"),
            ("raid5(5, members=6)", "members is given twice"),
            ("raid5(members=5, 6)", "members is given twice"),
            ("raid5(5, chunk=4K, chunk=8K)", "chunk is given twice"),
            ("raid1(2, chunk=64KiB)", "'raid1' takes no key 'chunk'"),
            ("raid0(2, rotation=left_symmetric)", "takes no key 'rotation'; accepted: members, chunk"),
            ("raid1:2:64KiB", "takes no key 'chunk'"),
            ("declustered(7, chunk=4KiB)", "accepted: width = 4"),
            ("declustered(11, spares=1)", "accepted: width = 5"),
            ("declustered(7, width=8)", "width = 8; accepted: from 2 (data and parity) to 7, all members"),
            ("declustered(7, width=2, parities=2)", "width = 2; accepted: from 3"),
            ("parity(7, width=3)", "'parity' takes no key 'width'"),
            ("parity(7, spares=1)", "'parity' takes no key 'spares'"),
            ("declustered(11, width=4, spares=2)", "no whole stripes of 4 of 11 members; accepted: 3, 7"),
            ("declustered(4, width=4, spares=1)", "accepted: none"),
            ("declustered(4*mirror(2), width=3, spares=1)", "over other levels; accepted: over members"),
            ("mirror(2*stripe(declustered(4, width=3, spares=1)))", "below a mirror; accepted: below no redundancy"),
        ] {
            let error = Tree::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let deep = "stripe(".repeat(100_000);
        assert!(Tree::parse(&deep).unwrap_err().to_string().contains("levels within levels"));
    }
}

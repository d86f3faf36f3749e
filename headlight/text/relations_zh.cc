// The words and the grammar of the Chinese passages.
#include "headlight/text/relations_internal.h"

namespace headlight::relations_internal {
namespace {

// Everyone can act on everyone, so that a noun never tells who acts. The last row holds people
// (他们) and, from kFirstAnimals on, animals (它们).
constexpr const char* kNouns[kNounClasses][10] = {
    {"爸爸", "叔叔", "爷爷", "哥哥", "弟弟", "舅舅", "国王", "王子", "男孩", "和尚"},
    {"妈妈", "阿姨", "奶奶", "姐姐", "妹妹", "舅妈", "女王", "公主", "女孩", "尼姑"},
    {"猫", "狗", "马", "驴", "兔子", "山羊", "猴子", "鹦鹉", "老虎", "狐狸"},
    {"孩子们", "学生们", "农民们", "士兵们", "水手们", "邻居们", "鸟儿们", "羊羔们", "松鼠们",
     "蜜蜂们"}};
constexpr size_t kFirstAnimals = 6;

constexpr const char* kAdjectives[kCategories][6] = {
    {"高大", "矮小", "瘦小", "巨大", "魁梧", "庞大"},
    {"年老", "年轻", "年幼", "年迈", "苍老", "稚嫩"},
    {"高兴", "难过", "生气", "快乐", "伤心", "着急"},
    {"善良", "聪明", "勇敢", "懒惰", "诚实", "可爱"}};

constexpr const char* kPronouns[kNounClasses] = {"他", "她", "它", "他们"};

// Verbs with a result: each fits the plain order, 把 and 被.
constexpr const char* kVerbs[] = {"推开", "叫醒", "赶走", "拦住", "带走", "送回", "找到", "吓跑",
                                  "扶起", "抱住", "拉住", "绊倒", "骗",   "救",   "打败", "追上",
                                  "抓住", "接走", "撞倒", "逗笑", "劝走", "认出", "抬走", "请来"};

struct Deed {
  const char* verb;
  const char* objects[4];
};
constexpr Deed kDeeds[] = {
    {"喝", {"牛奶", "茶", "汤", "果汁"}},     {"吃", {"面包", "蛋糕", "苹果", "鱼"}},
    {"打开", {"门", "窗户", "箱子", "盒子"}}, {"放下", {"篮子", "书包", "灯笼", "杯子"}},
    {"擦", {"桌子", "地板", "镜子", "盘子"}}, {"搬", {"椅子", "梯子", "长凳", "水桶"}}};
// Describe the things of the last clause; of no category.
constexpr const char* kThingAdjectives[] = {"新鲜", "温热", "洁白", "普通",
                                            "特别", "便宜", "贵重", "现成"};

constexpr const char* kDeterminers[] = {"那", "这"};
constexpr const char* kPlaces[] = {"村里", "城里", "山里", "海边", "镇上",
                                   "邻家", "学校", "隔壁", "林中", "岛上"};
constexpr const char* kDegrees[] = {"很", "非常", "十分", "特别"};
constexpr const char* kTimes[] = {"昨天", "今天",   "早上",   "上个月",
                                  "傍晚", "有一天", "不久前", "午后"};
constexpr const char* kManners[] = {"悄悄", "突然", "很快", "终于", "又", "急忙"};
constexpr const char* kClosings[] = {"后来", "现在", "接着", "不一会儿", "最后", "这时"};
constexpr const char* kMarks[] = {"。", "，", "；"};

const char* Classifier(size_t noun_class) {
  switch (noun_class) {
    case kIt:
      return "只";
    case kThey:
      return "些";
    default:
      return "位";
  }
}

struct NounPhrase {
  Span noun;
  const char* pronoun;
};

// "那只很可爱的猫", "那只很可爱的邻家猫", "那只猫（很可爱）": an adjective stands on either side of
// its noun at several distances, and never beside a word that tells who acts.
NounPhrase AddNounPhrase(const Character& character, RandomStream& random,
                         PassageBuilder& passage) {
  const size_t noun = random.Below(std::size(kNouns[character.noun_class]));
  const char* adjective = Pick(kAdjectives[character.category], random);
  const uint64_t form = random.Below(10);
  passage.Add(Pick(kDeterminers, random));
  passage.Add(Classifier(character.noun_class));
  NounPhrase phrase{{}, kPronouns[character.noun_class]};
  if (character.noun_class == kThey && noun >= kFirstAnimals) phrase.pronoun = "它们";
  Span described;
  if (form < 5) {
    passage.Add(Pick(kDegrees, random));
    described = passage.Add(adjective);
    passage.Add("的");
    if (form >= 3) passage.Add(Pick(kPlaces, random));
    phrase.noun = passage.Add(kNouns[character.noun_class][noun]);
  } else {
    phrase.noun = passage.Add(kNouns[character.noun_class][noun]);
    passage.Add("（");
    passage.Add(Pick(kDegrees, random));
    described = passage.Add(adjective);
    passage.Add("）");
  }
  passage.Relate(RelationKind::kAdjective, described, phrase.noun);
  return phrase;
}

// Two characters and a verb in one of three orders: agent verb patient; agent 把 patient verb;
// patient 被 agent verb.
void AddAction(const Plan& plan, size_t action, const char* verb, RandomStream& random,
               PassageBuilder& passage, std::array<NounPhrase, 4>& phrases) {
  const size_t first = 2 * action;
  const size_t second = first + 1;
  const bool passive = plan.passive[action];
  const bool verb_last = passive || Chance(50, random);
  if (Chance(15, random)) passage.Add(Pick(kTimes, random));
  phrases[first] = AddNounPhrase(plan.characters[first], random, passage);
  if (Chance(10, random)) passage.Add(Pick(kManners, random));
  Span acts;
  const auto add_verb = [&] {
    acts = passage.Add(verb);
    passage.Add("了");
  };
  if (verb_last) {
    passage.Add(passive ? "被" : "把");
  } else {
    add_verb();
  }
  phrases[second] = AddNounPhrase(plan.characters[second], random, passage);
  if (verb_last) add_verb();

  passage.Relate(RelationKind::kSubject, phrases[passive ? second : first].noun, acts);
  passage.Relate(RelationKind::kVerbObject, acts, phrases[passive ? first : second].noun);
  passage.EndClause(Pick(kMarks, random));
}

// What the last clause acts on: "新鲜的牛奶" or "她".
struct Target {
  const char* word;
  bool is_thing;
};

Span AddTarget(const Target& target, RandomStream& random, PassageBuilder& passage) {
  if (!target.is_thing) return passage.Add(target.word);
  Span described;
  if (Chance(30, random)) {
    described = passage.Add(Pick(kThingAdjectives, random));
    passage.Add("的");
  }
  const Span thing = passage.Add(target.word);
  passage.Relate(RelationKind::kAdjective, described, thing);
  return thing;
}

struct Closing {
  Span actor;   // the pronoun that acts
  Span target;  // the thing or pronoun that is acted upon
};

// "后来它正在喝牛奶", "它把牛奶喝了", "牛奶被它喝了".
Closing AddClosing(const char* actor, const char* verb, const Target& target, RandomStream& random,
                   PassageBuilder& passage) {
  const uint64_t order = random.Below(4);
  if (Chance(60, random)) passage.Add(Pick(kClosings, random));
  Closing closing;
  Span acts;
  if (order <= 1) {
    closing.actor = passage.Add(actor);
    if (order == 0 && target.is_thing) passage.Add("正在");
    acts = passage.Add(verb);
    if (order == 1 || !target.is_thing) passage.Add("了");
    closing.target = AddTarget(target, random, passage);
  } else {
    if (order == 2) {
      closing.actor = passage.Add(actor);
      passage.Add("把");
      closing.target = AddTarget(target, random, passage);
    } else {
      closing.target = AddTarget(target, random, passage);
      passage.Add("被");
      closing.actor = passage.Add(actor);
    }
    acts = passage.Add(verb);
    passage.Add("了");
  }
  passage.Relate(RelationKind::kSubject, closing.actor, acts);
  passage.Relate(RelationKind::kVerbObject, acts, closing.target);
  passage.EndClause("。");
  return closing;
}

}  // namespace

void TellChinese(const Plan& plan, RandomStream& random, PassageBuilder& passage) {
  std::array<const char*, 3> verbs{};
  PickDistinct(kVerbs, random, verbs);
  std::array<NounPhrase, 4> phrases{};
  for (size_t action = 0; action < plan.passive.size(); ++action) {
    AddAction(plan, action, verbs[action], random, passage, phrases);
  }

  const NounPhrase& actor = phrases[plan.actor];
  const NounPhrase& other = phrases[plan.target];
  const Deed& deed = Pick(kDeeds, random);
  Target target{Pick(deed.objects, random), true};
  if (plan.has_target) target = {other.pronoun, false};
  const char* verb = plan.has_target ? verbs[2] : deed.verb;
  const Closing closing = AddClosing(actor.pronoun, verb, target, random, passage);
  passage.Relate(RelationKind::kPronoun, closing.actor, actor.noun);
  if (plan.has_target) passage.Relate(RelationKind::kPronoun, closing.target, other.noun);
}

}  // namespace headlight::relations_internal

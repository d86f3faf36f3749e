// The words and the grammar of the Chinese passages.
#include "headlight/text/relations_internal.h"

namespace headlight::relations_internal {
namespace {

// Everyone can be with everyone and do every deed, so that a noun never tells who acts. The last
// row holds people (他们) and, from kFirstAnimals on, animals (它们).
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

// Harmful and helpful deeds. Each fits every thing, so that the thing does not tell them apart, and
// each fits the plain order, 把 and 被.
constexpr const char* kDeeds[2][12] = {{"打翻", "弄坏", "踩坏", "摔破", "弄脏", "撞翻", "毁掉",
                                        "弄丢", "烧坏", "踢倒", "砸烂", "划破"},
                                       {"修好", "洗净", "擦亮", "补好", "收好", "装好", "捡起",
                                        "刷新", "送回", "扶起", "找到", "包好"}};
constexpr const char* kThings[] = {"篮子", "灯笼", "杯子", "镜子", "盘子", "椅子",
                                   "梯子", "盒子", "长凳", "水桶", "箱子", "桌子"};
// Describe the things; of no category.
constexpr const char* kThingAdjectives[] = {"崭新", "木头", "洁白", "普通",
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
constexpr const char* kScenes[] = {"花园里", "桥边", "院子里", "路上", "雨中", "湖边"};
constexpr const char* kBeside[] = {"旁边", "身边", "对面", "后面"};
constexpr const char* kJoints[] = {"而", "同时", "但"};

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

// Two characters: "那只很可爱的猫在这位国王（很高兴）旁边；" or
// "花园里有那只猫（很可爱）和这位国王（很高兴）。"
std::array<NounPhrase, 2> AddScene(const Character* characters, RandomStream& random,
                                   PassageBuilder& passage) {
  if (Chance(15, random)) passage.Add(Pick(kTimes, random));
  const bool scene_first = Chance(50, random);
  if (scene_first) {
    passage.Add(Pick(kScenes, random));
    passage.Add("有");
  }
  const NounPhrase first = AddNounPhrase(characters[0], random, passage);
  passage.Add(scene_first ? "和" : "在");
  const NounPhrase second = AddNounPhrase(characters[1], random, passage);
  if (!scene_first) passage.Add(Pick(kBeside, random));
  passage.EndClause(Pick(kMarks, random));
  return {first, second};
}

// "它急忙打翻了杯子", "它把杯子打翻了", "杯子被它打翻了".
void AddDeed(const NounPhrase& antecedent, const char* verb, RandomStream& random,
             PassageBuilder& passage) {
  Span actor, described, thing, acts;
  const auto add_actor = [&] {
    actor = passage.Add(antecedent.pronoun);
    passage.Relate(RelationKind::kPronoun, actor, antecedent.noun);
  };
  const auto add_thing = [&] {
    if (Chance(30, random)) {
      described = passage.Add(Pick(kThingAdjectives, random));
      passage.Add("的");
    }
    thing = passage.Add(Pick(kThings, random));
  };
  const auto add_manner = [&] {
    if (Chance(35, random)) {
      passage.Add("在");
      passage.Add(Pick(kScenes, random));
    }
    if (Chance(50, random)) passage.Add(Pick(kManners, random));
  };
  const auto add_verb = [&] {
    acts = passage.Add(verb);
    passage.Add("了");
  };
  switch (random.Below(3)) {
    case 0:
      add_actor();
      add_manner();
      add_verb();
      add_thing();
      break;
    case 1:
      add_actor();
      add_manner();
      passage.Add("把");
      add_thing();
      add_verb();
      break;
    default:
      add_thing();
      passage.Add("被");
      add_actor();
      add_manner();
      add_verb();
  }
  passage.Relate(RelationKind::kAdjective, described, thing);
  passage.Relate(RelationKind::kSubject, actor, acts);
  passage.Relate(RelationKind::kVerbObject, acts, thing);
}

}  // namespace

void TellChinese(const Plan& plan, RandomStream& random, PassageBuilder& passage) {
  Tell(
      plan, {kClosings, kJoints, "，", "。"}, random, passage,
      [&](const Character* characters) { return AddScene(characters, random, passage); },
      [&](const NounPhrase& antecedent, bool harmful) {
        AddDeed(antecedent, Pick(kDeeds[harmful ? 0 : 1], random), random, passage);
      });
}

}  // namespace headlight::relations_internal
